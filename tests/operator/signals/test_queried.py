"""Queries next to scraping: what a slow or failing Prometheus delays, and which results a reading has."""

import asyncio
from datetime import UTC, datetime

from argosy.api.values.identity import PoolKey
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.signals.queried import QueriedScraper
from argosy.signals.targets import PoolTargets, Query, ScrapeTarget

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REFUSALS = Query("chat", "rollout/refusals", "refusals{version='2'}")
KEY = ("chat", "rollout/refusals")


class FakeScraper:
    """A scraper that reports the servers it was given."""

    closed = False

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        assert not pool.queries
        return PoolSignals(error=f"{len(pool.targets)} servers")

    async def close(self) -> None:
        self.closed = True


class FakePrometheus:
    """A Prometheus that answers when `answers` is set, with a value of each query or with an error."""

    def __init__(self, error: str = "") -> None:
        self.answers, self.error, self.reads, self.closed = asyncio.Event(), error, 0, False

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        assert not pool.targets
        self.reads += 1
        await self.answers.wait()
        if self.error:
            return PoolSignals(
                error=self.error, query_errors={(one.member, one.name): self.error for one in pool.queries}
            )
        return PoolSignals(queries={(one.member, one.name): float(self.reads) for one in pool.queries})

    async def close(self) -> None:
        self.closed = True


def targets(*queries: Query) -> PoolTargets:
    return PoolTargets(PoolKey("n/p"), (ScrapeTarget("p-0"),), queries)


async def read(source: QueriedScraper, *queries: Query) -> PoolSignals:
    signals = await source.read(targets(*queries), NOW)
    await asyncio.sleep(0)
    return signals


async def test_a_reading_waits_for_no_query_and_has_its_result_later() -> None:
    prometheus = FakePrometheus()
    source = QueriedScraper(FakeScraper(), prometheus)
    for _ in range(3):
        signals = await read(source, REFUSALS)
        assert (signals.error, signals.queries, signals.query_errors) == ("1 servers", {}, {})
    assert prometheus.reads == 1, "a query that is under way is not sent a second time"
    prometheus.answers.set()
    await asyncio.sleep(0)
    assert (await read(source, REFUSALS)).queries == {KEY: 1.0}
    assert (await read(source, REFUSALS)).queries == {KEY: 2.0}
    await source.close()


async def test_a_result_of_other_variables_does_not_count() -> None:
    prometheus = FakePrometheus()
    prometheus.answers.set()
    source = QueriedScraper(FakeScraper(), prometheus)
    await read(source, REFUSALS)
    other = Query("chat", "rollout/refusals", "refusals{version='3'}")
    assert (await read(source, other)).queries == {}
    assert (await read(source, other)).queries == {KEY: 2.0}
    assert (await read(source)).queries == {}
    await source.close()


async def test_an_error_is_that_of_the_queries_alone() -> None:
    prometheus = FakePrometheus("it cannot be reached")
    prometheus.answers.set()
    source = QueriedScraper(FakeScraper(), prometheus)
    await read(source, REFUSALS)
    signals = await read(source, REFUSALS)
    assert (signals.error, signals.query_errors) == ("1 servers", {KEY: "it cannot be reached"})
    await source.close()


async def test_closing_cancels_what_is_under_way() -> None:
    scraper, prometheus = FakeScraper(), FakePrometheus()
    source = QueriedScraper(scraper, prometheus)
    await read(source, REFUSALS)
    await source.close()
    assert (scraper.closed, prometheus.closed) == (True, True)


async def test_a_query_that_was_not_read_for_a_while_has_no_result_of_then() -> None:
    prometheus = FakePrometheus()
    prometheus.answers.set()
    source = QueriedScraper(FakeScraper(), prometheus)
    await read(source, REFUSALS)
    assert (await read(source, REFUSALS)).queries == {KEY: 1.0}
    await read(source)
    prometheus.answers.clear()
    assert (await read(source, REFUSALS)).queries == {}
    prometheus.answers.set()
    await asyncio.sleep(0)
    await source.close()

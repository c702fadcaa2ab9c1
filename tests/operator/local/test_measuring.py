"""What `argosy up` measures: its own servers, every two seconds, a source for each pool."""

from datetime import UTC, datetime

from tests.operator.controller.bodies import model, pool

from argosy.analysis.subjects import AnalysisTargets
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.controller.resources.parsed_body import parsed_body
from argosy.local.measuring import INTERVAL_S, ROLLOUT_INTERVAL_S, Measuring, pool_targets, prometheus_urls
from argosy.planning.facts import ServerReport
from argosy.signals.targets import PoolTargets, Query, ScrapeTarget
from argosy_agent.contract import LoadedModel, LoadState

KEY = PoolKey("n/p")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
METRICS = "http://127.0.0.1:8002/metrics"


class FakeSource:
    """A source that counts its reads."""

    def __init__(self, fails_at: int = 0) -> None:
        self.reads, self.closed, self.fails_at = 0, False, fails_at

    async def read(self, pool: PoolTargets, now: datetime) -> PoolSignals:
        self.reads += 1
        if pool.pool == KEY and self.reads == self.fails_at:
            raise ZeroDivisionError("no requests")
        return PoolSignals(error=f"{pool.pool} {self.reads}")

    async def close(self) -> None:
        self.closed = True


def test_servers_that_answer_report_what_they_have_ready() -> None:
    bodies = (pool(), model(modelName="M-7"), model("b"), model("c", poolRef={"name": "q"}))
    resources = [parsed_body(body).newest for body in bodies]
    loaded = (LoadedModel("m", 1, LoadState.READY), LoadedModel("b", 1, LoadState.LOADING))
    reports = [ServerReport("p-0", True, loaded), ServerReport("p-1", False)]
    result = pool_targets(KEY, resources, reports, {"p-0": METRICS})
    assert result.targets == (ScrapeTarget("p-0", METRICS, serves={"M-7": "m"}),)
    assert result.served_names == {"m": "M-7", "b": "b"}


async def test_pools_are_read_when_it_is_time_and_let_go_when_they_are_gone() -> None:
    sources: list[FakeSource] = []

    def open_(url: str) -> FakeSource:
        sources.append(FakeSource())
        return sources[-1]

    measuring = Measuring(open_)
    requests = [PoolTargets(KEY), PoolTargets(PoolKey("n/q"))]
    assert await measuring.read(requests, 100.0, NOW)
    assert not await measuring.read(requests, 100.0 + INTERVAL_S - 0.1, NOW)
    assert await measuring.read(requests[:1], 100.0 + INTERVAL_S, NOW)
    assert measuring.latest == {KEY: PoolSignals(error="n/p 2")}
    assert [source.closed for source in sources] == [False, True]
    await measuring.close()
    assert [source.closed for source in sources] == [True, True]


async def test_a_pool_that_cannot_be_read_says_why_and_hinders_no_other() -> None:
    measuring = Measuring(lambda _: FakeSource(fails_at=1))
    other, requests = PoolKey("n/q"), [PoolTargets(KEY), PoolTargets(PoolKey("n/q"))]
    assert await measuring.read(requests, 100.0, NOW)
    why = "a fault of Argosy's own, please report it: ZeroDivisionError: no requests"
    assert measuring.latest == {KEY: PoolSignals(error=why), other: PoolSignals(error="n/q 1")}
    assert await measuring.read(requests, 100.0 + INTERVAL_S, NOW)
    assert measuring.latest[KEY] == PoolSignals(error="n/p 2")


async def test_pools_are_read_more_often_while_a_candidate_is_proven() -> None:
    measuring = Measuring(lambda _: FakeSource())
    assert await measuring.read([PoolTargets(KEY)], 100.0, NOW)
    under_way = [PoolTargets(KEY, under_way=True)]
    assert await measuring.read(under_way, 100.0 + ROLLOUT_INTERVAL_S, NOW)
    assert not await measuring.read([PoolTargets(KEY)], 100.0 + 2 * ROLLOUT_INTERVAL_S, NOW)


def test_what_rollouts_need_is_part_of_the_targets() -> None:
    analysis = AnalysisTargets({"m": 30.0}, (("m", "rollout/q", "x"),), under_way=True)
    result = pool_targets(KEY, [parsed_body(body).newest for body in (pool(), model())], [], {}, analysis)
    assert (result.analyzed, result.under_way) == ({"m": 30.0}, True)
    assert result.queries == (Query("m", "rollout/q", "x"),)


async def test_another_prometheus_is_another_source() -> None:
    opened: dict[str, FakeSource] = {}

    def open_(url: str) -> FakeSource:
        opened[url] = FakeSource()
        return opened[url]

    monitored = pool(monitoring={"prometheus": {"url": "http://p:9090"}})
    urls = prometheus_urls([parsed_body(body).newest for body in (monitored, model())])
    assert urls == {KEY: "http://p:9090"}
    measuring = Measuring(open_)
    assert await measuring.read([PoolTargets(KEY)], 100.0, NOW, urls)
    assert await measuring.read([PoolTargets(KEY)], 100.0 + INTERVAL_S, NOW)
    assert [(url, source.reads, source.closed) for url, source in opened.items()] == [
        ("http://p:9090", 1, True),
        ("", 1, False),
    ]
    await measuring.close()

"""Servers that are scraped: real HTTP on this machine, well and badly behaved; time is played."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import web

from argosy.api.values.identity import PoolKey
from argosy.signals.scraping import NO_PROMETHEUS, Scraper
from argosy.signals.targets import PoolTargets, Query, ScrapeTarget

NOW = datetime(2030, 1, 1, tzinfo=UTC)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    """Yield the URL of a server that answers so."""
    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0]
        yield f"http://{host}:{port}/metrics"
    finally:
        await runner.cleanup()


class Counting:
    """A server whose one model has answered 10 requests more each time it is asked."""

    def __init__(self) -> None:
        self.count = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.count += 10
        return web.Response(text=f'nv_inference_request_success{{model="Served-1",version="3"}} {self.count}\n')


def pool(*urls: str, queries: tuple[Query, ...] = ()) -> PoolTargets:
    targets = tuple(ScrapeTarget(f"s-{index}", url, serves={"Served-1": "one"}) for index, url in enumerate(urls))
    return PoolTargets(PoolKey("default/p"), targets, queries)


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def clock() -> Clock:
    return Clock()


@pytest.fixture
async def scraper(clock: Clock) -> AsyncIterator[Scraper]:
    scraper = Scraper(clock, timeout_s=60.0)
    yield scraper
    await scraper.close()


async def test_members_have_what_servers_call_by_another_name(scraper: Scraper, clock: Clock) -> None:
    async with serving(Counting().answer) as url:
        first = await scraper.read(pool(url), NOW)
        assert (first.members, first.error) == ({}, "")
        clock.now = 5.0
        second = await scraper.read(pool(url), NOW)
    assert second.members["one"].completions == pytest.approx(2)
    assert second.members["one"].at == NOW


async def test_servers_are_queried_side_by_side(scraper: Scraper) -> None:
    waiting = asyncio.Barrier(3)

    async def together(request: web.Request) -> web.StreamResponse:
        await waiting.wait()
        return web.Response(text="")

    async with serving(together) as url:
        assert (await scraper.read(pool(url, url, url), NOW)).error == ""


async def _refused(request: web.Request) -> web.StreamResponse:
    return web.Response(status=401)


async def _garbage(request: web.Request) -> web.StreamResponse:
    return web.Response(text='nv_inference_count{model="m"')


async def _silent(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def _dripping(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"#\n")
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("answer", "says", "timeout_s"),
    [
        (_refused, "answers 401 Unauthorized", 60.0),
        (_garbage, "its metrics cannot be read", 60.0),
        (_silent, "no answer from http://127.0.0.1", 1.5),
        (_dripping, "within 1.5 s", 1.5),
    ],
)
async def test_a_silent_server_is_named_and_the_others_are_read(
    clock: Clock, answer: Answer, says: str, timeout_s: float
) -> None:
    scraper = Scraper(clock, timeout_s=timeout_s)
    async with serving(Counting().answer) as good, serving(answer) as bad:
        await scraper.read(pool(good, bad), NOW)
        clock.now = 10.0
        result = await scraper.read(pool(good, bad), NOW)
    await scraper.close()
    assert says in result.error
    assert result.error.startswith("1 of 2 servers cannot be measured; s-1: ")
    assert result.members["one"].completions == pytest.approx(1)
    assert (result.members["one"].servers, result.members["one"].unmeasured) == (1, 1)


async def test_a_server_that_is_gone_is_recorded_for_a_while_and_then_no_more(scraper: Scraper, clock: Clock) -> None:
    async with serving(Counting().answer) as url:
        await scraper.read(pool(url), NOW)
        clock.now = 5.0
        await scraper.read(pool(url), NOW)
    clock.now = 20.0
    result = await scraper.read(pool(url), NOW)
    assert (NOW - result.members["one"].at).total_seconds() == 15
    assert "connection" in result.error.lower()
    clock.now = 300.0
    assert (await scraper.read(pool(url), NOW)).members == {}


@pytest.mark.parametrize("url", ["", "http://[", "ftp://127.0.0.1/", "http://127.0.0.1:1/metrics"])
async def test_an_address_where_nothing_is_says_so(scraper: Scraper, url: str) -> None:
    result = await scraper.read(pool(url), NOW)
    assert result.error.startswith("1 of 1 servers cannot be measured; s-0: ")


async def test_queries_need_a_prometheus(scraper: Scraper) -> None:
    result = await scraper.read(pool(queries=(Query("one", "depth", "vector(1)"),)), NOW)
    assert result.query_errors == {("one", "depth"): NO_PROMETHEUS}

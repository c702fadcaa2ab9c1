"""A collection is known, whatever becomes of its watch. Against a stand-in on loopback, without an API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.operator.controller.standin import StandIn, kubeconfig, standing_in, status
from tests.operator.handlers.test_kopf_feed import until

from argosy.cluster.cache.fake import FakeSink
from argosy.cluster.cache.watches import reflector as module
from argosy.cluster.cache.watches.reflectors import Reflectors
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ForbiddenError
from argosy.cluster.client.kinds import CONFIG_MAP


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    async with standing_in() as found:
        for name in ("one", "two"):
            found.put("configmaps", {"metadata": {"namespace": "n", "name": name, "uid": name}})
        yield found


@asynccontextmanager
async def reflecting(server: StandIn, folder: Path) -> AsyncIterator[tuple[FakeSink, Reflectors]]:
    sink = FakeSink()
    async with Connection.open(kubeconfig(server, folder)) as connection:
        reflectors = Reflectors(connection)
        reflectors.add(CONFIG_MAP, sink, needed=True)
        running = asyncio.create_task(reflectors.run())
        try:
            yield sink, reflectors
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_a_list_then_events(server: StandIn, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as (sink, reflectors):
        await reflectors.synced()
        assert sink.names() == {"one", "two"}
        await until(lambda: server.watched("configmaps") == 1)
        server.put("configmaps", {"metadata": {"namespace": "n", "name": "three", "uid": "three"}})
        server.delete("configmaps", "one")
        await until(lambda: sink.names() == {"two", "three"})
        assert server.accepted("GET", "configmaps") == ["application/json"]


async def test_a_version_that_is_no_longer_kept_is_listed_again(server: StandIn, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as (sink, reflectors):
        await reflectors.synced()
        await until(lambda: server.watched("configmaps") == 1)
        server.delete("configmaps", "one", untold=True)
        server.fail("configmaps", 410)
        await until(lambda: sink.names() == {"two"})
        assert reflectors.troubles == {}


async def test_a_watch_that_breaks_goes_on_where_it_was(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.05)
    async with reflecting(server, tmp_path) as (sink, reflectors):
        await reflectors.synced()
        await until(lambda: server.watched("configmaps") == 1)
        server.fail("configmaps", 500)
        await until(lambda: server.watched("configmaps") == 0)
        await until(lambda: server.watched("configmaps") == 1)
        server.delete("configmaps", "one")
        await until(lambda: sink.names() == {"two"})
        assert len(server.accepted("GET", "configmaps")) == 1


async def test_what_may_not_be_read_is_asked_for_again(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FORBIDDEN_S", 0.05)
    server.refused["/configmaps"] = status(403, "configmaps is forbidden")
    async with reflecting(server, tmp_path) as (sink, reflectors):
        with pytest.raises(ForbiddenError):
            await reflectors.synced()
        assert reflectors.troubles["configmaps"].startswith("may not list and watch configmaps: grant it")
        server.refused.clear()
        await until(lambda: sink.names() == {"one", "two"})
        await until(lambda: reflectors.troubles == {})

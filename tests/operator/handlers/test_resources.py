"""What is told of resources is what there is, whatever becomes of watches."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.operator.controller.standin import StandIn, standing_in
from tests.operator.controller.test_store import model, pool

from argosy.cluster.connection import Connection
from argosy.cluster.credentials import Credentials
from argosy.cluster.observe import Observer
from argosy.cluster.transport import Transport
from argosy.controller.store import Store
from argosy.handlers import resources as handlers


class Told:
    """Keeps resources as the operator does."""

    def __init__(self) -> None:
        self.store = Store()
        self.marked: list[str] = []

    def seen(self, body: dict[str, Any]) -> None:
        """The API server has it."""
        self.marked += self.store.put(body)

    def gone(self, body: dict[str, Any]) -> None:
        """It no longer has it."""
        self.marked += self.store.drop(body)

    def ended(self, identity: str, uid: str) -> None:
        """The observer says so."""
        self.marked += self.store.end(identity, uid)

    def members(self) -> list[str]:
        """The models of the pool."""
        return [each.name for each in self.store.of_pool("n/p").members]


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    """An API server with a pool and two models."""
    async with standing_in() as found:
        found.put("servingpools", pool())
        found.put("inferencemodels", model("kept"))
        found.put("inferencemodels", model("other"))
        yield found


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that comes soon."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # what is waited for has no event


@asynccontextmanager
async def told_by_kopf(server: StandIn) -> AsyncIterator[Told]:
    """What kopf tells."""
    told = Told()
    running = asyncio.create_task(handlers.run(told, Connection(Transport(Credentials(server.url))), (), lambda: None))
    try:
        await until(lambda: told.store.count == 3)
        yield told
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_what_is_deleted_while_a_watch_is_broken_is_forgotten(server: StandIn) -> None:
    async with told_by_kopf(server) as told, Transport(Credentials(server.url)) as transport:
        observer = Observer(Connection(transport), (), lambda _: None, told.ended)
        observing = asyncio.create_task(observer.run())
        await observer.synced()
        await until(lambda: server.watched("inferencemodels") == 2)
        models = {(f"InferenceModel n/{name}", f"uid-{name}") for name in ("kept", "other")}
        assert observer.resources() == {*models, ("ServingPool n/p", "uid-p")}
        told.marked.clear()
        server.delete("inferencemodels", "other", untold=True)
        server.fail("inferencemodels", 410)
        await until(lambda: told.members() == ["kept"])
        assert told.marked == ["n/p"]
        assert {identity for identity, _ in observer.resources()} == {"InferenceModel n/kept", "ServingPool n/p"}
        await until(lambda: metadata_watches(server) == 2)
        observing.cancel()
        await asyncio.gather(observing, return_exceptions=True)


def metadata_watches(server: StandIn) -> int:
    """How often models were asked to be watched, their metadata alone."""
    watched = server.accepted("watch", "inferencemodels")
    return len([accept for accept in watched if "PartialObjectMetadata;" in accept])


async def test_kopf_is_run_again_when_an_error_ends_it(
    server: StandIn, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "RETRY_FIRST_S", 0.05)
    others = asyncio.create_task(asyncio.sleep(60))
    async with told_by_kopf(server) as told:
        later = asyncio.create_task(asyncio.sleep(60))
        await until(lambda: server.watched("inferencemodels") == 1)
        server.fail("inferencemodels", 500)
        server.put("inferencemodels", model("new"))
        await until(lambda: "new" in told.members())
        assert "it broke" in "".join(each.getMessage() for each in caplog.records if each.name == handlers.__name__)
    assert not others.done()
    assert not later.done()  # kopf ends what it knows not, unless it is kept from that
    others.cancel()
    later.cancel()

"""What is told of resources is what there is, whatever becomes of watches."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.operator.controller.bodies import model, pool
from tests.operator.controller.fakes import FakeListener
from tests.operator.controller.standin import StandIn, kubeconfig, standing_in, status

from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ForbiddenError
from argosy.controller.resources.feed import UntoldError
from argosy.handlers import deletions, kopf_feed
from argosy.handlers.kopf_feed import KopfFeed

MODELS = {"InferenceModel n/kept", "InferenceModel n/other"}


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    """Yield an API server with a pool and two models."""
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
async def feeding(server: StandIn, folder: Path) -> AsyncIterator[tuple[FakeListener, KopfFeed]]:
    """Yield a running feed and its listener."""
    told = FakeListener()
    async with Connection.open(kubeconfig(server, folder)) as connection:
        feed = KopfFeed(told, connection, (), lambda: None)
        running = asyncio.create_task(feed.run())
        try:
            yield told, feed
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_everything_is_told_before_it_is_synced(server: StandIn, tmp_path: Path) -> None:
    async with feeding(server, tmp_path) as (told, feed):
        await feed.synced()
        assert told.resources.keys() == {*MODELS, "ServingPool n/p"}
        assert feed.troubles == {}


async def test_what_is_deleted_while_a_watch_is_broken_is_forgotten(server: StandIn, tmp_path: Path) -> None:
    async with feeding(server, tmp_path) as (told, feed):
        await feed.synced()
        await until(lambda: server.watched("inferencemodels") == 2)
        server.delete("inferencemodels", "other", untold=True)
        server.fail("inferencemodels", 410)
        await until(lambda: told.resources.keys() == {"InferenceModel n/kept", "ServingPool n/p"})
        await until(lambda: metadata_watches(server) == 2)


def metadata_watches(server: StandIn) -> int:
    """Return how many watches of models' metadata alone were requested."""
    watched = server.accepted("watch", "inferencemodels")
    return len([accept for accept in watched if "PartialObjectMetadata;" in accept])


async def test_kopf_that_tells_nothing_is_found_out(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "UNTOLD_S", 0.2)
    monkeypatch.setattr(FakeListener, "has", lambda *_: False)
    async with feeding(server, tmp_path) as (_, feed):
        with pytest.raises(UntoldError, match="kopf tells nothing of InferenceModel n/kept, InferenceModel n/other"):
            await feed.synced()


async def test_a_kind_that_may_not_be_read_is_no_empty_one(server: StandIn, tmp_path: Path) -> None:
    server.refused["/ensembles"] = status(403, "ensembles is forbidden")
    async with feeding(server, tmp_path) as (_, feed):
        with pytest.raises(ForbiddenError, match="ensembles is forbidden"):
            await feed.synced()
        assert feed.troubles["ensembles"].startswith("may not list and watch ensembles: grant")


async def test_kopf_is_run_again_when_an_error_ends_it(
    server: StandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kopf_feed, "RETRY_FIRST_S", 0.05)
    others = asyncio.create_task(asyncio.sleep(60))
    async with feeding(server, tmp_path) as (told, feed):
        await feed.synced()
        later = asyncio.create_task(asyncio.sleep(60))
        await until(lambda: server.watched("inferencemodels") == 2)
        server.fail("inferencemodels", 500)
        server.put("inferencemodels", model("new"))
        await until(lambda: "InferenceModel n/new" in told.resources)
        assert "it broke" in "".join(each.getMessage() for each in caplog.records if each.name == kopf_feed.__name__)
    assert not others.done()
    assert not later.done()  # kopf ends what it knows not, unless it is kept from that
    others.cancel()
    later.cancel()

"""What the feed reports is what there is, whatever becomes of watches."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.operator.controller.bodies import model, pool
from tests.operator.controller.standin import StandIn, kubeconfig, standing_in, status
from tests.waiting import until

from argosy.api.values.identity import Identity
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ForbiddenError
from argosy.controller.resources.feed import ResourceFeed
from argosy.controller.resources.parsed_body import ParsedBody

MODELS, POOL = {"InferenceModel n/kept", "InferenceModel n/other"}, {"ServingPool n/p"}


@dataclass(slots=True)
class Reported:
    """The resources that were reported, by identity, and how often each was."""

    resources: dict[str, ParsedBody] = field(default_factory=dict)
    reports: list[str] = field(default_factory=list)

    def seen(self, parsed: ParsedBody) -> None:
        self.resources[parsed.newest.identity] = parsed
        self.reports.append(parsed.newest.identity)

    def ended(self, identity: Identity, uid: str) -> None:
        if identity in self.resources and self.resources[identity].newest.metadata.uid == uid:
            del self.resources[identity]


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    """Start an API server with a pool and two models."""
    async with standing_in() as standin:
        standin.put("servingpools", pool())
        standin.put("inferencemodels", model("kept"))
        standin.put("inferencemodels", model("other"))
        yield standin


@asynccontextmanager
async def feeding(server: StandIn, folder: Path) -> AsyncIterator[tuple[Reported, ResourceFeed]]:
    """Run a feed, and record what it reports."""
    reported = Reported()
    async with Connection.open(kubeconfig(server, folder)) as connection:
        feed = ResourceFeed(connection, (), reported.seen, reported.ended)
        running = asyncio.create_task(feed.run())
        try:
            yield reported, feed
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_everything_is_reported_before_it_is_synced(server: StandIn, tmp_path: Path) -> None:
    async with feeding(server, tmp_path) as (reported, feed):
        await feed.synced()
        assert reported.resources.keys() == {*MODELS, *POOL}
        assert feed.errors == {}


async def test_changes_are_reported_as_they_come(server: StandIn, tmp_path: Path) -> None:
    async with feeding(server, tmp_path) as (reported, feed):
        await feed.synced()
        await until(lambda: server.watched("inferencemodels") == 1)
        server.put("inferencemodels", model("new"))
        server.delete("inferencemodels", "other")
        await until(lambda: reported.resources.keys() == {"InferenceModel n/kept", "InferenceModel n/new", *POOL})


async def test_what_is_deleted_while_a_watch_is_broken_is_forgotten(server: StandIn, tmp_path: Path) -> None:
    async with feeding(server, tmp_path) as (reported, feed):
        await feed.synced()
        await until(lambda: server.watched("inferencemodels") == 1)
        server.delete("inferencemodels", "other", untold=True)
        server.fail("inferencemodels", 410)
        await until(lambda: reported.resources.keys() == {"InferenceModel n/kept", *POOL})
        assert reported.reports.count("InferenceModel n/kept") == 1  # listed twice, changed once


async def test_another_resource_of_the_same_name_ends_the_former(server: StandIn, tmp_path: Path) -> None:
    async with feeding(server, tmp_path) as (reported, feed):
        await feed.synced()
        await until(lambda: server.watched("inferencemodels") == 1)
        server.delete("inferencemodels", "other", untold=True)
        server.put("inferencemodels", model("other", uid="another"))
        await until(lambda: reported.resources["InferenceModel n/other"].newest.metadata.uid == "another")


async def test_a_kind_that_may_not_be_read_is_no_empty_one(server: StandIn, tmp_path: Path) -> None:
    server.refused["/ensembles"] = status(403, "ensembles is forbidden")
    async with feeding(server, tmp_path) as (_, feed):
        with pytest.raises(ForbiddenError, match="ensembles is forbidden"):
            await feed.synced()
        assert feed.errors["ensembles"].startswith("may not list and watch ensembles: grant")

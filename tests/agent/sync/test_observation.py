"""Queries to a server: seldom for its full index, by name in between, one for all that wait. Time is the test's."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.agent.conftest import FakeControl

from argosy_agent.contract import LoadedModel, LoadState
from argosy_agent.sync.control import SlowError, UnreachableError
from argosy_agent.sync.ledger import Ledger
from argosy_agent.sync.observation import DRAIN_FIRST_S, DRAIN_MOST_S, INDEX_FIRST_S, INDEX_MOST_S, Observation
from argosy_agent.sync.sidecar import POLL_S


@dataclass
class Server:
    """A server with models, what is known of it, and a clock that goes on by what is slept."""

    fake: FakeControl
    ledger: Ledger = field(default_factory=lambda: Ledger({}))
    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.observation = Observation(self.fake, self.ledger, lambda: self.now, self.sleep)

    async def sleep(self, seconds: float) -> None:
        """Return at once."""
        self.pauses.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def looks(self, seconds: float) -> None:
        """Look as often as an agent's loop does in so many seconds."""
        for _ in range(int(seconds / POLL_S)):
            self.now += POLL_S
            await self.observation.look()


@pytest.fixture
def server(fake: FakeControl) -> Server:
    """Return a server with forty models."""
    fake.loaded = {f"m{n}": {1: ""} for n in range(40)}
    return Server(fake)


async def test_while_nothing_changes_the_index_is_seldom_requested(server: Server) -> None:
    await server.looks(600)
    assert server.fake.queries["index"] <= 600 / INDEX_MOST_S + 3
    assert server.fake.queries.total() <= 600 / POLL_S + 1


async def test_a_server_that_restarted_is_detected_at_the_next_look(server: Server) -> None:
    await server.looks(600)
    server.fake.loaded = {}
    await server.looks(POLL_S)
    assert server.ledger.ready() == []


async def test_one_model_that_is_lost_is_detected_by_the_next_index(server: Server) -> None:
    await server.looks(600)
    del server.fake.loaded["m7"]
    await server.looks(INDEX_MOST_S + POLL_S)
    assert server.ledger.state("m7", 1) is None
    assert len(server.ledger.ready()) == 39


async def test_few_models_are_requested_one_by_one(server: Server) -> None:
    server.fake.loaded = {"a": {1: ""}, "b": {1: "", 2: ""}}
    await server.looks(600)
    requests = []

    async def is_ready(name: str, version: int) -> bool:
        requests.append((name, version))
        return True

    server.fake.is_ready = is_ready  # type: ignore[method-assign]
    await server.looks(INDEX_MOST_S)
    assert set(requests) == {("a", 1), ("b", 1), ("b", 2)}


async def test_after_a_change_the_index_is_requested_again_soon(server: Server) -> None:
    await server.looks(600)
    server.fake.queries.clear()
    server.observation.soon()
    await server.looks(INDEX_FIRST_S)
    assert server.fake.queries["index"] == 1


async def test_the_index_of_an_empty_server_is_requested(server: Server) -> None:
    server.fake.loaded = {}
    await server.looks(POLL_S)
    server.fake.loaded = {"m": {1: ""}}
    await server.looks(POLL_S)
    assert server.ledger.ready() == [("m", 1)]


async def test_while_something_drains_the_pauses_grow(server: Server) -> None:
    server.fake.draining = {("left", 1)}

    async def sleep(seconds: float) -> None:
        await Server.sleep(server, seconds)
        if len(server.pauses) == 12:
            server.fake.draining.clear()

    server.observation = Observation(server.fake, server.ledger, lambda: server.now, sleep)
    assert await server.observation.gone("left", {1})
    longest = [min(DRAIN_FIRST_S * 2**n, DRAIN_MOST_S) for n in range(12)]
    assert all(most / 2 <= pause <= most for pause, most in zip(server.pauses, longest, strict=True))
    assert server.fake.queries["index"] == 12


async def test_what_drains_together_is_requested_together(server: Server) -> None:
    server.fake.draining = {(f"m{n}", 1) for n in range(40)}
    server.fake.loaded = {}
    drains = [asyncio.create_task(server.observation.gone(f"m{n}", {1})) for n in range(40)]
    await asyncio.sleep(0)
    server.fake.draining = set()
    assert all(await asyncio.gather(*drains))
    assert server.fake.queries["index"] == 1


async def test_an_answer_from_before_the_question_does_not_count(server: Server) -> None:
    answers: asyncio.Queue[tuple[LoadedModel, ...]] = asyncio.Queue()
    server.fake.index = answers.get  # type: ignore[method-assign]
    first = asyncio.create_task(server.observation.index())
    await asyncio.sleep(0)
    second = asyncio.create_task(server.observation.index())
    answers.put_nowait((LoadedModel("m", 1, LoadState.UNLOADING),))
    await first
    assert not second.done()
    answers.put_nowait(())
    await second
    assert server.ledger.state("m", 1) is None


@pytest.mark.parametrize(("error", "message"), [(UnreachableError("gone"), False), (SlowError("slow"), True)])
async def test_a_lost_server_drains_nothing_and_a_slow_one_is_queried_again(
    server: Server, error: Exception, message: bool
) -> None:
    troubles, index = [error], server.fake.index

    async def troubled() -> Any:
        if troubles:
            raise troubles.pop()
        return await index()

    server.fake.index = troubled  # type: ignore[method-assign]
    assert await server.observation.gone("m0", {2}) is message


async def test_the_result_of_a_load_outlives_an_earlier_index(server: Server) -> None:
    server.ledger.begins("new")
    server.ledger.index_requested()
    server.fake.loaded["new"] = {1: ""}
    assert await server.observation.are_ready("new", (1,))
    server.ledger.ended("new", observed=True)
    server.ledger.observed((LoadedModel("new", 1, LoadState.LOADING),))
    assert server.ledger.state("new", 1) is LoadState.READY


@pytest.mark.parametrize("loaded_since", [(), ("new",)])
async def test_what_is_forgotten_while_the_server_is_slow_to_answer_is_requested_again(
    server: Server, loaded_since: tuple[str, ...]
) -> None:
    await server.looks(600)
    requested, answered = asyncio.Event(), asyncio.Event()

    async def is_ready(name: str, version: int) -> bool:
        requested.set()
        await answered.wait()
        return True

    server.fake.is_ready = is_ready  # type: ignore[method-assign]
    server.now = 0.0
    look = asyncio.create_task(server.observation.look())
    await asyncio.wait_for(requested.wait(), 60)
    server.ledger.lost()
    for name in loaded_since:
        server.ledger.noted(name, (1,))
    answered.set()
    await look
    assert {f"m{n}" for n in range(40)} <= {name for name, _ in server.ledger.ready()}


async def test_what_ended_unknown_is_requested_at_once(server: Server) -> None:
    await server.looks(600)
    server.fake.queries.clear()
    server.ledger.begins("m1")
    await server.observation.look()
    assert server.fake.queries["index"] == 0
    server.ledger.ended("m1", observed=False)
    await server.observation.look()
    assert server.fake.queries["index"] == 1
    assert not server.ledger.unsettled


def test_a_version_that_was_unloaded_is_not_reported_as_failed() -> None:
    ledger = Ledger({})
    ledger.observed([LoadedModel("m", 1, LoadState.READY), LoadedModel("m", 2, LoadState.UNAVAILABLE, "unloaded")])
    assert ledger.loaded() == (LoadedModel("m", 1, LoadState.READY),)

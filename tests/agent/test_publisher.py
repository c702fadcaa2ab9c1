"""The times at which states are written: changes of kind at once, progress now and then, failures again."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from argosy_agent import publisher as publishing
from argosy_agent.contract import LoadedModel, LoadState
from argosy_agent.contract.documents import AgentState, parse_state, state_text
from argosy_agent.publisher import Publisher, PublishError, in_kind
from argosy_common.backoff import Backoff


@dataclass
class Sink:
    """Keeps what is written; fails as often as `failures` says."""

    written: list[AgentState] = field(default_factory=list)
    failures: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, text: str) -> None:
        """Keep it."""
        if self.failures:
            self.failures -= 1
            raise PublishError("the disk is full")
        self.written.append(parse_state(text))
        self.came.set()

    async def next(self) -> AgentState:
        """Wait for the next state that is written."""
        await self.came.wait()
        self.came.clear()
        return self.written[-1]


def state(kind: LoadState, reason: str = "") -> AgentState:
    """Return a state with one model."""
    return AgentState("pod", True, False, (LoadedModel("m", 1, kind, reason),))


class Time:
    """A clock that waiting for it moves on: seconds. Waits longer than `patience` do not come to their end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.patience = publishing.PROGRESS_S
        self.waits: list[float] = []
        real = asyncio.wait_for

        async def wait_for(awaitable: Any, seconds: float) -> Any:
            """Wait for no real time at all."""
            if seconds > self.patience:
                return await awaitable
            self.waits.append(seconds)
            self.now += seconds
            return await real(awaitable, 0)

        monkeypatch.setattr(asyncio, "wait_for", wait_for)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """Return a clock that waits move on."""
    return Time(monkeypatch)


async def test_what_changes_in_kind_is_written_at_once_and_progress_waits(time: Time) -> None:
    sink = Sink()
    publisher = Publisher(sink, lambda: time.now, state_text, in_kind)
    task = asyncio.create_task(publisher.run())
    publisher.offer(state(LoadState.LOADING, "1 of 9 MiB"))
    assert await sink.next() == state(LoadState.LOADING, "1 of 9 MiB")
    time.now += 0.5
    publisher.offer(state(LoadState.READY))
    assert await sink.next() == state(LoadState.READY)
    assert time.waits == []
    publisher.offer(state(LoadState.LOADING, "2 of 9 MiB"))
    await sink.next()
    time.now += 0.5
    publisher.offer(state(LoadState.LOADING, "3 of 9 MiB"))
    assert await sink.next() == state(LoadState.LOADING, "3 of 9 MiB")
    assert time.waits == [pytest.approx(1.5)]
    task.cancel()


async def test_nothing_new_is_not_written(time: Time) -> None:
    sink = Sink()
    publisher = Publisher(sink, lambda: time.now, state_text, in_kind)
    task = asyncio.create_task(publisher.run())
    publisher.offer(state(LoadState.READY))
    await sink.next()
    publisher.offer(state(LoadState.READY))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(sink.written) == 1
    task.cancel()


async def test_an_unchanged_state_is_renewed_now_and_then(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "BACKOFF_FIRST_S", 0.001)
    time.patience = publishing.RENEWED_S
    sink = Sink()
    publisher = Publisher(sink, lambda: time.now, state_text, in_kind)
    publisher.offer(state(LoadState.READY))
    task = asyncio.create_task(publisher.run())
    await sink.next()
    first = time.now
    sink.failures = 1
    await sink.next()
    await sink.next()
    assert time.now - first == 2 * publishing.RENEWED_S <= 60
    assert sink.written[:3] == [state(LoadState.READY)] * 3
    task.cancel()


async def test_a_write_that_fails_is_tried_again_with_the_newest_state(
    time: Time, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publishing, "BACKOFF_FIRST_S", 0.001)
    sink = Sink(failures=3)
    publisher = Publisher(sink, lambda: time.now, state_text, in_kind)
    publisher.offer(state(LoadState.LOADING))
    task = asyncio.create_task(publisher.run())
    await asyncio.sleep(0)
    publisher.offer(state(LoadState.READY))
    assert await sink.next() == state(LoadState.READY)
    assert caplog.text.count("the disk is full") == 1
    task.cancel()


def test_only_words_of_what_is_under_way_are_progress() -> None:
    assert in_kind(state(LoadState.LOADING, "1")) == in_kind(state(LoadState.LOADING, "2"))
    assert in_kind(state(LoadState.UNAVAILABLE, "1")) != in_kind(state(LoadState.UNAVAILABLE, "2"))
    assert in_kind(state(LoadState.LOADING)) != in_kind(state(LoadState.READY))


def test_pauses_grow_to_their_most_and_restart() -> None:
    backoff = Backoff(1.0, 10.0)
    pauses = [backoff.next() for _ in range(40)]
    for pause, full in zip(pauses, [1, 2, 4, 8, *[10] * 36], strict=True):
        assert full / 2 <= pause <= full
    backoff.reset()
    assert backoff.next() <= 1.0

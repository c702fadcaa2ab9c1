"""Sources of desired repositories, sinks of states, and when a state is written to its sink.

A state that changed in kind is written at once, the progress of downloads now and then, and an unchanged state again
after `RENEWED_S`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from argosy_agent.contract import LoadedModel, LoadState
from argosy_agent.contract.documents import AgentState
from argosy_common.backoff import Backoff

LOG = logging.getLogger(__name__)
PROGRESS_S = 2.0
"""The least time between two writes that report only progress."""
RENEWED_S = 30.0
"""After this an unchanged state is written again: it may have been deleted, and nothing is routed without it."""
BACKOFF_FIRST_S, BACKOFF_MOST_S = 0.5, 5.0


class PublishError(Exception):
    """A state could not be written now; the message says why, and what to do about it, if anything."""


class DesiredSource(Protocol):
    """A source of the texts of desired repositories."""

    def texts(self) -> AsyncIterator[str]:
        """Yield every text as it comes, the same one again whenever the source was read again.

        Never ends and never fails: errors are logged, and reading is tried again.
        """


class StateSink(Protocol):
    """A sink for the text of a state."""

    async def write(self, text: str) -> None:
        """Replace the text. Raises PublishError."""


State = TypeVar("State")


class Publisher(Generic[State]):
    """Writes the newest offered state to a sink, in a task of its own: a sink that hangs delays nothing else.

    `clock` is steady, in seconds. `text` renders a state; a change of what `kind` returns is written at once.
    """

    def __init__(
        self, sink: StateSink, clock: Callable[[], float], text: Callable[[State], str], kind: Callable[[State], object]
    ) -> None:
        self._sink, self._clock, self._text, self._kind = sink, clock, text, kind
        self._newest: State | None = None
        self._written: State | None = None
        self._written_at = 0.0
        self._offered = asyncio.Event()
        self._message = ""

    def offer(self, state: State) -> None:
        """Offer the present state for writing."""
        if state != self._newest:
            self._newest = state
            self._offered.set()

    async def run(self) -> None:
        """Write, until cancelled."""
        backoff = Backoff(BACKOFF_FIRST_S, BACKOFF_MOST_S)
        while True:
            await self._due()
            state = self._newest
            if state is None:
                continue
            try:
                await self._sink.write(self._text(state))
            except PublishError as error:
                self._log_once(logging.WARNING, f"the state cannot be written, and is tried again: {error}")
                await asyncio.sleep(backoff.next())
            else:
                backoff.reset()
                self._written, self._written_at = state, self._clock()
                self._log_once(logging.INFO, "the state is written")

    async def _due(self) -> None:
        """Wait until there is a state to write, and it is time for it."""
        while (wait := self._wait_s()) > 0:
            self._offered.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._offered.wait(), wait)

    def _wait_s(self) -> float:
        if self._newest is None:
            return RENEWED_S
        if self._written is None or self._kind(self._newest) != self._kind(self._written):
            return 0.0
        pause = RENEWED_S if self._newest == self._written else PROGRESS_S
        return self._written_at + pause - self._clock()

    def _log_once(self, level: int, words: str) -> None:
        if words != self._message:
            self._message = words
            LOG.log(level, "%s", words)


def in_kind(state: AgentState) -> AgentState:
    """Return a state without the progress of models."""
    return replace(state, models=tuple(map(_without_progress, state.models)))


def _without_progress(loaded: LoadedModel) -> LoadedModel:
    return replace(loaded, reason="") if loaded.state is LoadState.LOADING else loaded

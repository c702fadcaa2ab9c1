"""When a state is written: what changes in kind at once, how far a download is now and then, and all of it again."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Generic, TypeVar

from argosy_agent.contract import LoadedModel, LoadState
from argosy_agent.contract.documents import AgentState

from .backoff import Backoff
from .ports import PublishError, StateSink

LOG = logging.getLogger(__name__)
PROGRESS_S = 2.0
"""The least time between two writes that tell of nothing but progress."""
RENEWED_S = 30.0
"""After this an unchanged state is written again: somebody may have deleted it, and nothing is routed without it."""
BACKOFF_FIRST_S, BACKOFF_MOST_S = 0.5, 5.0


State = TypeVar("State")


class Publisher(Generic[State]):
    """Writes the newest state offered to a sink, on a task of its own: a sink that hangs holds up nothing.

    `clock` is steady, in seconds. `text` is how a state is written, `kind` what of it is written at once when it
    changes.
    """

    def __init__(
        self, sink: StateSink, clock: Callable[[], float], text: Callable[[State], str], kind: Callable[[State], object]
    ) -> None:
        self._sink, self._clock, self._text, self._kind = sink, clock, text, kind
        self._newest: State | None = None
        self._written: State | None = None
        self._written_at = 0.0
        self._offered = asyncio.Event()
        self._said = ""

    def offer(self, state: State) -> None:
        """This is the state now."""
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
                self._say(logging.WARNING, f"the state cannot be written, and is tried again: {error}")
                await asyncio.sleep(backoff.next())
            else:
                backoff.reset()
                self._written, self._written_at = state, self._clock()
                self._say(logging.INFO, "the state is written")

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

    def _say(self, level: int, words: str) -> None:
        if words != self._said:
            self._said = words
            LOG.log(level, "%s", words)


def in_kind(state: AgentState) -> AgentState:
    """Return a state without what is said of models under way."""
    return replace(state, models=tuple(map(_without_progress, state.models)))


def _without_progress(loaded: LoadedModel) -> LoadedModel:
    return replace(loaded, reason="") if loaded.state is LoadState.LOADING else loaded

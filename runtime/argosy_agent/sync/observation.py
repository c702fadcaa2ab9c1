"""Observing a server's models as cheaply as possible.

The full index costs a server more, the more models it has. So it is requested at pauses that grow while it has no news.
In between one version that was ready is checked by name, each in its turn: after a restart of the server the first
check fails, for it has lost them all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from argosy_common.backoff import Backoff

from .control import ControlError, Controls, SlowError
from .ledger import Ledger

INDEX_FIRST_S, INDEX_MOST_S = 2.0, 10.0
"""The pauses between two indexes while nothing waits for one."""
DRAIN_FIRST_S, DRAIN_MOST_S = 0.1, 2.0
"""The pauses between two indexes while something drains: most answer their last request in a moment."""


class Observation:
    """Polls one server, and records its answers in the ledger. `clock` is steady, in seconds, as is `sleep`.

    It lives on one event loop.
    """

    def __init__(
        self,
        control: Controls,
        ledger: Ledger,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._control, self._ledger, self._clock, self._sleep = control, ledger, clock, sleep
        self._pause_s = INDEX_FIRST_S
        self._due_at = clock()
        self._turn = 0
        self._asking = asyncio.Lock()
        self._requested = self._answered = 0

    async def look(self) -> None:
        """Bring the ledger up to date. Raises ControlError."""
        if self._clock() >= self._due_at or self._ledger.unsettled or not await self._stands():
            await self.index()

    def soon(self) -> None:
        """Request the index soon, as a change of one model may have changed others."""
        self._pause_s = INDEX_FIRST_S
        self._due_at = min(self._due_at, self._clock() + INDEX_FIRST_S)

    async def index(self, after: int | None = None) -> None:
        """Store an index in the ledger that was requested after this call began, or after that many had been.

        One answer serves all callers that wait. Raises ControlError.
        """
        requested = self._requested if after is None else after
        async with self._asking:
            if self._answered <= requested:
                self._requested = number = self._requested + 1
                await self._ask()
                self._answered = number

    async def are_ready(self, model: str, versions: Iterable[int]) -> bool:
        """Return whether these versions are ready, checked by name, and store it. Raises ControlError."""
        requested = tuple(versions)
        for version in requested:
            if not await self._control.is_ready(model, version):
                return False
        self._ledger.noted(model, requested)
        return True

    async def gone(self, model: str, versions: set[int]) -> bool:
        """Wait until the server has answered the last request of each version and dropped it.

        Return whether the server reports that; if not, it is gone itself.
        """
        pauses = Backoff(DRAIN_FIRST_S, DRAIN_MOST_S)
        while True:
            requested = self._requested
            await self._sleep(pauses.next())
            try:
                await self.index(after=requested)
            except SlowError:
                continue
            except ControlError:
                return False
            if not self._ledger.holds(model, versions):
                return True

    async def _stands(self) -> bool:
        """Return whether one version that was ready still is; False where none was, or it was forgotten meanwhile."""
        ready = self._ledger.ready()
        if not ready:
            return False
        self._turn = (self._turn + 1) % len(ready)
        checked = ready[self._turn]
        return await self._control.is_ready(*checked) and checked in self._ledger.ready()

    async def _ask(self) -> None:
        self._ledger.index_requested()
        new = self._ledger.observed(await self._control.index())
        self._pause_s = INDEX_FIRST_S if new else min(2 * self._pause_s, INDEX_MOST_S)
        self._due_at = self._clock() + self._pause_s

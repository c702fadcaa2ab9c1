"""What a server says of its models, asked as cheaply as will do.

The whole index costs a server more, the more models it has. So it is asked for at pauses that grow while it says
nothing new. In between one version that was ready is asked for by name, each in its turn: of a server that has started
again the first one tells, for it has lost them all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from argosy_agent.exchange.backoff import Backoff

from .control import ControlError, Controls, SlowError
from .ledger import Ledger

INDEX_FIRST_S, INDEX_MOST_S = 2.0, 10.0
"""The pauses between two indexes that nobody waits for."""
DRAIN_FIRST_S, DRAIN_MOST_S = 0.1, 2.0
"""The pauses between two indexes while something drains: most answer their last request in a moment."""


class Observation:
    """Looks at one server, and writes what it says into the ledger. `clock` is steady, in seconds, as is `sleep`.

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
        self._asked = self._answered = 0

    async def look(self) -> None:
        """See that the ledger is still right. Raises ControlError."""
        if self._clock() >= self._due_at or self._ledger.unsettled or not await self._stands():
            await self.index()

    def soon(self) -> None:
        """The server was told to change something: others of its models may have changed with it."""
        self._pause_s = INDEX_FIRST_S
        self._due_at = min(self._due_at, self._clock() + INDEX_FIRST_S)

    async def index(self, after: int | None = None) -> None:
        """Have an index in the ledger that was asked for after this call began, or after that many had been.

        One answers all who wait for one. Raises ControlError.
        """
        asked = self._asked if after is None else after
        async with self._asking:
            if self._answered <= asked:
                self._asked = number = self._asked + 1
                await self._ask()
                self._answered = number

    async def are_ready(self, model: str, versions: Iterable[int]) -> bool:
        """Return whether these versions are ready, asked by name; if so the ledger says it, too. Raises
        ControlError.
        """
        wanted = tuple(versions)
        for version in wanted:
            if not await self._control.is_ready(model, version):
                return False
        self._ledger.noted(model, wanted)
        return True

    async def gone(self, model: str, versions: set[int]) -> bool:
        """Wait until the server has answered the last request of each version and dropped it.

        Whether the server says so; if not, it is gone itself.
        """
        pauses = Backoff(DRAIN_FIRST_S, DRAIN_MOST_S)
        while True:
            asked = self._asked
            await self._sleep(pauses.next())
            try:
                await self.index(after=asked)
            except SlowError:
                continue
            except ControlError:
                return False
            if not self._ledger.holds(model, versions):
                return True

    async def _stands(self) -> bool:
        """Whether one version that was ready still is. Where none was, there is nothing to go by."""
        ready = self._ledger.ready()
        if not ready:
            return False
        self._turn = (self._turn + 1) % len(ready)
        return await self._control.is_ready(*ready[self._turn])

    async def _ask(self) -> None:
        self._ledger.asked()
        new = self._ledger.observed(await self._control.index())
        self._pause_s = INDEX_FIRST_S if new else min(2 * self._pause_s, INDEX_MOST_S)
        self._due_at = self._clock() + self._pause_s

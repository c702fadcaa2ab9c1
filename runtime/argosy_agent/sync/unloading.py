"""Before a server is asked to drop a model that it serves: wait until nobody asks for it any more."""

import asyncio
from collections.abc import Callable, Iterable

from argosy_runtime.quiet import Quiet, QuietPeriod

from .control import ControlError, Controls, SlowError, Tally

POLL_S = 0.5


class UntilQuiet:
    """Waits by the server's own counts. `clock` is a steady one, `wall` is Unix time, both in seconds."""

    def __init__(
        self, control: Controls, period: QuietPeriod, clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self._control, self._period, self._clock, self._wall = control, period, clock, wall

    async def wait(self, model: str, versions: frozenset[int], leaves: Callable[[], bool]) -> None:
        """Return once these versions are quiet, the longest wait is over, the server is gone, or `leaves` says no.

        A server that takes long to say what it did counts as one that is asked.
        """
        if self._period.period_s == 0.0:
            return
        quiet: Quiet | None = None
        requests, silent_s = 0, 0.0
        while leaves():
            try:
                tallies = [each for each in await self._control.statistics(model) if each.version in versions]
            except SlowError:
                requests -= 1
            except ControlError:
                return
            else:
                requests, silent_s = _requests(tallies), self._silent_s(tallies)
            now = self._clock()
            quiet = quiet or Quiet(self._period, requests, now, silent_s)
            if quiet.reached(requests, now):
                return
            await asyncio.sleep(POLL_S)

    def _silent_s(self, tallies: Iterable[Tally]) -> float:
        last_ms = max((each.last_ms for each in tallies), default=0)
        return max(0.0, self._wall() - last_ms / 1000.0)


def _requests(tallies: Iterable[Tally]) -> int:
    return sum(each.requests + each.failures for each in tallies)

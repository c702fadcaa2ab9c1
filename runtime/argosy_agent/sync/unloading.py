"""Before a server is asked to drop a model that it serves: wait until nobody asks for it any more."""

import asyncio
from collections.abc import Callable, Iterable

from argosy_common.idle import Quiet, QuietPeriod

from .control import ControlError, Controls, SlowError, Tally

POLL_S = 0.5


class UntilQuiet:
    """Waits by the server's own counts. `clock` is a steady one, `wall` is Unix time, both in seconds."""

    def __init__(
        self, control: Controls, period: QuietPeriod, clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self._control, self._period, self._clock, self._wall = control, period, clock, wall

    async def wait(
        self, model: str, versions: frozenset[int], leaves: Callable[[], bool], successors: frozenset[int] = frozenset()
    ) -> None:
        """Wait until these versions are quiet, the longest wait is over, the server is gone, or `leaves` says no.

        A server that takes long to say what it did counts as one that is asked, and so do these versions while one of
        their `successors` is not ready or only fails: they may be needed again.
        """
        if self._period.period_s == 0.0:
            return
        quiet: Quiet | None = None
        requests, silent_s, looks = 0, 0.0, 0
        while leaves():
            looks += 1
            try:
                every = await self._control.statistics(model)
            except SlowError:
                requests -= 1
            except ControlError:
                return
            else:
                tallies = [each for each in every if each.version in versions]
                requests, silent_s = _requests(tallies), self._silent_s(tallies)
                if not successors <= {each.version for each in every if not _only_fails(each)}:
                    requests, silent_s = -looks, 0.0
            now = self._clock()
            quiet = quiet or Quiet(self._period, requests, now, silent_s)
            if quiet.reached(requests, now):
                return
            await asyncio.sleep(POLL_S)

    def _silent_s(self, tallies: Iterable[Tally]) -> float:
        last_ms = max((each.last_ms for each in tallies), default=0)
        return max(0.0, self._wall() - last_ms / 1000.0)


def _only_fails(tally: Tally) -> bool:
    return tally.failures > 0 and tally.requests == 0


def _requests(tallies: Iterable[Tally]) -> int:
    return sum(each.requests + each.failures for each in tallies)

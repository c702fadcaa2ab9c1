"""The wait before a served model is unloaded, until it is idle."""

import asyncio
from collections.abc import Callable, Iterable

from argosy_common.idle import IdlePeriod, IdleWait

from .control import ControlError, Controls, SlowError, Tally

POLL_S = 0.5


class UntilIdle:
    """Waits by the server's own statistics. `clock` is a steady one, `wall` is Unix time, both in seconds."""

    def __init__(
        self, control: Controls, period: IdlePeriod, clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self._control, self._period, self._clock, self._wall = control, period, clock, wall

    async def wait(
        self, model: str, versions: frozenset[int], leaves: Callable[[], bool], successors: frozenset[int] = frozenset()
    ) -> None:
        """Wait until these versions are idle, the longest wait is over, the server is gone, or `leaves` returns False.

        A server that takes long to return its statistics counts as busy, and so do these versions while one of their
        `successors` is not ready or only fails: they may be needed again.
        """
        if self._period.period_s == 0.0:
            return
        wait: IdleWait | None = None
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
                tallies = [tally for tally in every if tally.version in versions]
                requests, silent_s = _requests(tallies), self._silent_s(tallies)
                if not successors <= {tally.version for tally in every if not _only_fails(tally)}:
                    requests, silent_s = -looks, 0.0
            now = self._clock()
            wait = wait or IdleWait(self._period, requests, now, silent_s)
            if wait.reached(requests, now):
                return
            await asyncio.sleep(POLL_S)

    def _silent_s(self, tallies: Iterable[Tally]) -> float:
        last_ms = max((tally.last_ms for tally in tallies), default=0)
        return max(0.0, self._wall() - last_ms / 1000.0)


def _only_fails(tally: Tally) -> bool:
    return tally.failures > 0 and tally.requests == 0


def _requests(tallies: Iterable[Tally]) -> int:
    return sum(tally.requests + tally.failures for tally in tallies)

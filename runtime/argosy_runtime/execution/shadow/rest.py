"""The time between copies, in which devices are left alone, so that few requests come while a copy runs.

After copies that took so long the next ones wait until the stable version was idle for four times as long, and at most
19 times as long: copies run for a fifth of the idle time, or 5 % of all time if that is more.
"""

from typing import Final

from .versions import ComparedVersion

_IDLE: Final = 4
_ALL: Final = 19
"""Times the duration of copies."""


class Rest:
    """The time that has to pass before the next copies. Times are nanoseconds."""

    def __init__(self, stable: ComparedVersion, now: int) -> None:
        self._stable = stable
        self._idle_left = 0
        self._ends_at = now
        self._at = now
        self._busy = stable.statistics.busy_ns(now)

    def begin(self, now: int, lasted: int) -> None:
        """Begin to rest after copies that took so long."""
        self._observe(now)
        self._idle_left = _IDLE * lasted
        self._ends_at = now + _ALL * lasted

    def until(self, now: int) -> int:
        """Return when it ends at the soonest: `now` once it is over."""
        self._observe(now)
        return max(now, min(now + self._idle_left, self._ends_at))

    def _observe(self, now: int) -> None:
        """Subtract the idle time that passed, on average of all instances."""
        busy = self._stable.statistics.busy_ns(now)
        passed, worked = now - self._at, busy - self._busy
        self._at, self._busy = now, busy
        instances = self._stable.instances or 1
        self._idle_left = max(0, self._idle_left - max(0, passed - worked // instances))

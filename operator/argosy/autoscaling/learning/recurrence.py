"""Load that comes again at equal intervals, as what a timer triggers does: replicas can be there before it."""

from datetime import datetime, timedelta
from itertools import pairwise

from msgspec import Struct

_QUIET_S = 120.0
"""After so long without a request the next one is the start of another load."""
_STARTS = 4
"""So many of the latest starts must be equally far apart."""
_SPREAD = 0.05
"""The share of an interval by which intervals may differ."""
_OVER_S = 10.0
_LATE_S = 60.0
"""What is so much later than it should be will not come."""


class Recurrence(Struct, frozen=True):
    """When loads came after nothing did, the latest: `starts`. `rate`: the most requests a second of the last one that
    is over, `present` of the one since. `active_at`: when there was last a request.
    """

    starts: tuple[datetime, ...] = ()
    rate: float = 0.0
    present: float = 0.0
    active_at: datetime | None = None

    def after(self, now: datetime, active: bool, rate: float) -> "Recurrence":
        """Once it was looked whether there are requests, and how many a second."""
        if not active:
            return self
        last = self.active_at
        if last is not None and (now - last).total_seconds() < _QUIET_S:
            return Recurrence(self.starts, self.rate, max(self.present, rate), now)
        return Recurrence((*self.starts, now)[-_STARTS:], max(self.present, self.rate / 2), rate, now)

    def expected(self, now: datetime, ahead_s: float) -> float:
        """Return requests a second that come with the next start, where that is at most so far ahead; else 0."""
        known = self._interval()
        if known is None:
            return 0.0
        interval, spread = known
        begins = self.starts[-1] + timedelta(seconds=interval)
        early, late = begins - timedelta(seconds=ahead_s + spread), begins + timedelta(seconds=spread + _LATE_S)
        return max(self.rate, self.present) if early <= now <= late else 0.0

    def is_over(self, now: datetime) -> bool:
        """Return whether nothing is to be expected before the next start."""
        quiet = self.active_at is not None and (now - self.active_at).total_seconds() >= _OVER_S
        return quiet and self._interval() is not None

    def _interval(self) -> tuple[float, float] | None:
        """Seconds from start to start, and by how much they differ; None where they differ too much."""
        if len(self.starts) < _STARTS:
            return None
        intervals = [(after - before).total_seconds() for before, after in pairwise(self.starts)]
        spread, interval = max(intervals) - min(intervals), sum(intervals) / len(intervals)
        return (interval, spread) if spread <= _SPREAD * interval else None

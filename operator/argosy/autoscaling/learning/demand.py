"""How fast requests come, and how fast they will: Holt's level and trend over uneven steps of time, Page's cumulative
sums for what is more than chance, and how steep a climb is.
"""

from math import exp, log1p, sqrt

from msgspec import Struct

_LEVEL_S = 60.0
"""Seconds after which the level has followed most of a change that is within the noise."""
_FIRST_S = 10.0
"""The same just after a change: then it is the mean of what came since."""
_TREND_S = 40.0
_SURPRISE = 4.0
"""Standard deviations of chance beyond which one reading is no noise."""
_DRIFT, _DECIDED = 0.5, 5.0
"""Page's test: of each reading's surprise so much is taken to be chance, and so much of the sum is not."""
_STEADIER = 0.5
"""By how much more the sum has to be, for each time that a load has been steady `e` times as long: who looks often
enough finds by chance what would be rare in one look.
"""
_RISE, _RISES = 2.0, 3
"""Standard deviations by which a reading is a rise, and so many in a row: two may have one step in the middle of them.
"""
_CERTAIN = 3.0
"""Standard deviations by which a trend must exceed chance over the time that it is projected."""
MOST_GROWTH = 1.5
"""Growth is trusted for at most this much, as a share of the present rate."""
_NOISE_S = 120.0
_ODD = 2.0
"""Standard deviations: what is more tells of a change, and little of how much the load varies."""


class Sum(Struct, frozen=True):
    """Surprises of one sign, less drift, as long as they are more than that; of so many readings."""

    total: float = 0.0
    readings: int = 0

    def after(self, surprise: float) -> "Sum":
        """With one more, in standard deviations."""
        total = self.total + surprise - _DRIFT
        return Sum(total, self.readings + 1) if total > 0 else NONE

    def shift(self, steady_s: float) -> float:
        """Standard deviations by which these readings were off; 0 while that may be chance. `steady_s`: seconds since
        the last change.
        """
        decided = _DECIDED + _STEADIER * log1p(steady_s / _LEVEL_S)
        return self.total / self.readings + _DRIFT if self.total > decided else 0.0


NONE = Sum()


class Climb(Struct, frozen=True):
    """A change upwards, and what rose on after it: from `low`, for so many `seconds`, in so many `rises`."""

    low: float
    seconds: float
    rises: int

    def after(self, surprise: float, elapsed_s: float) -> "Climb | None":
        """With one more reading; none once one is no higher than those before."""
        if surprise <= _DRIFT:
            return None
        return Climb(self.low, self.seconds + elapsed_s, self.rises + (surprise > _RISE))


class Demand(Struct, frozen=True):
    """Requests a second: `level` now, `trend` by which it changes each second, and `excess`, how many times more it
    varies than arrivals that know nothing of each other. `last`: the newest that was measured. `since_s`: seconds since
    the level changed by more than chance, `climb`: upwards, and it goes on; `above` and `below`: what may become the
    next change.
    """

    level: float = 0.0
    trend: float = 0.0
    excess: float = 1.0
    last: float = 0.0
    since_s: float = 0.0
    climb: Climb | None = None
    above: Sum = NONE
    below: Sum = NONE

    @staticmethod
    def of(measured: float) -> "Demand":
        """By the first that was measured."""
        return Demand(measured, last=measured)

    def after(self, measured: float, elapsed_s: float, over_s: float) -> "Demand":
        """Once another rate was measured, over `over_s` seconds and `elapsed_s` after the last one."""
        if elapsed_s <= 0:
            return self
        foreseen = max(0.0, self.level + self.trend * elapsed_s)
        gap, chance = measured - foreseen, self._chance(max(self.level, measured), over_s)
        surprise = gap / chance
        above, below = self.above.after(surprise), self.below.after(-surprise)
        shift = above.shift(self.since_s) - below.shift(self.since_s)
        step = gap if abs(surprise) > _SURPRISE else shift * chance
        trend = self._steeper(gap, chance, elapsed_s)
        excess = self._varies((measured - self.last) / chance, elapsed_s)
        climb = self._climbs(surprise, step, elapsed_s)
        if step:
            return Demand(max(0.0, foreseen + step), trend, excess, measured, 0.0, climb)
        since_s = self.since_s + elapsed_s
        level = foreseen + (1 - exp(-elapsed_s / _mean_of(since_s))) * gap
        return Demand(max(0.0, level), trend, excess, measured, since_s, climb, above, below)

    def _steeper(self, gap: float, chance: float, elapsed_s: float) -> float:
        """The trend. A step is no slope: of a gap only so much counts as may be chance."""
        calm = min(max(gap, -_SURPRISE * chance), _SURPRISE * chance)
        return self.trend + (1 - exp(-elapsed_s / _TREND_S)) * (1 - exp(-elapsed_s / _LEVEL_S)) * calm / elapsed_s

    def _climbs(self, surprise: float, step: float, elapsed_s: float) -> Climb | None:
        """The climb that goes on, or begins with this step."""
        climb = self.climb.after(surprise, elapsed_s) if self.climb is not None else None
        return Climb(self.level, elapsed_s, 1) if climb is None and step > 0 else climb

    def expected(self, ahead_s: float, over_s: float) -> float:
        """Return the rate in `ahead_s`, if it grows on; the present level if it falls, or if its growth may
        be chance.
        """
        growth = self.trend * ahead_s
        if growth <= _CERTAIN * self._chance(self.level, over_s):
            growth = 0.0
        if self.climb is not None and self.climb.rises >= _RISES:
            growth = max(growth, (self.level - self.climb.low) / self.climb.seconds * ahead_s)
        return self.level + min(growth, MOST_GROWTH * self.level)

    def noise(self, over_s: float) -> float:
        """Return the standard deviation that the level itself has by chance, as the mean of what was measured
        of late.
        """
        return self._chance(self.level, over_s + 2 * _mean_of(self.since_s))

    def _varies(self, difference: float, elapsed_s: float) -> float:
        """By what two readings one after the other differ, of which a slope is a small part: twice the variance."""
        share = 1 - exp(-elapsed_s / _NOISE_S)
        return max(1.0, self.excess + share * (min(difference * difference / 2, _ODD * _ODD) - 1) * self.excess)

    def _chance(self, rate: float, over_s: float) -> float:
        """The standard deviation of a rate counted over so many seconds."""
        return sqrt(self.excess * max(rate, 1 / over_s) / over_s)


def _mean_of(since_s: float) -> float:
    """Seconds after which the level has followed most of what is within the noise, so long after its last change."""
    return min(max(since_s, _FIRST_S), _LEVEL_S)

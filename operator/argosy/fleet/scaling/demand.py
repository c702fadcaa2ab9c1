"""How fast requests come, and how fast they will: Holt's level and trend, over uneven steps of time."""

from dataclasses import dataclass
from math import exp, sqrt

_LEVEL_S = 12.0
"""Seconds after which the level has followed most of a change that is within the noise."""
_TREND_S = 40.0
_SURPRISE = 3.0
"""Standard deviations of chance beyond which a change is no noise: the level follows at once, and the trend does not
take a step for a slope."""
_CERTAIN = 1.0
"""Standard deviations by which a trend must exceed chance over the time that it is projected."""
MOST_GROWTH = 1.0
"""A trend is trusted for at most this much growth, as a share of the present rate."""
_NOISE_S = 120.0


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests a second: `level` now, `trend` by which it changes each second, and `excess`, how many times more it
    varies than arrivals that know nothing of each other.
    """

    level: float = 0.0
    trend: float = 0.0
    excess: float = 1.0

    def after(self, measured: float, elapsed_s: float, window_s: float) -> "Demand":
        """Once another rate was measured over `window_s`, `elapsed_s` after the last one."""
        if elapsed_s <= 0:
            return self
        gap = measured - (self.level + self.trend * elapsed_s)
        chance = self._chance(window_s)
        surprise, calm = gap / chance, min(max(gap, -_SURPRISE * chance), _SURPRISE * chance)
        follow = 1 - exp(-elapsed_s / _LEVEL_S)
        level = max(0.0, self.level + self.trend * elapsed_s + (follow * gap if gap == calm else gap))
        trend = self.trend + (1 - exp(-elapsed_s / _TREND_S)) * follow * calm / elapsed_s
        share = 1 - exp(-elapsed_s / _NOISE_S)
        excess = self.excess + share * (min(surprise * surprise * self.excess, 9.0) - self.excess)
        return Demand(level, trend, max(1.0, excess))

    def expected(self, ahead_s: float, window_s: float) -> float:
        """The rate in `ahead_s`, if it grows on; the present level if it falls, or if its growth may be chance."""
        growth = self.trend * ahead_s
        if growth <= _CERTAIN * self._chance(window_s):
            return self.level
        return self.level + min(growth, MOST_GROWTH * self.level)

    def _chance(self, window_s: float) -> float:
        """The standard deviation of a rate counted over the window."""
        return sqrt(self.excess * max(self.level, 1 / window_s) / window_s)

"""How fast requests come, and how fast they will: Holt's level and trend over uneven steps of time, and what is too
sudden for them.
"""

from dataclasses import dataclass
from math import exp, sqrt

_LEVEL_S = 12.0
"""Seconds after which the level has followed most of a change that is within the noise."""
_TREND_S = 40.0
_SURPRISE = 4.0
"""Standard deviations of chance beyond which a change is no noise: the level follows at once, and the trend does not
take a step for a slope."""
_RISES = 3
"""So many rises one after the other are a slope, as steep as the least of them."""
_EVEN = 0.5
"""What share of the greatest rise the least must be: a load that jumps rises more and more slowly after it."""
_CERTAIN = 3.0
"""Standard deviations by which a trend must exceed chance over the time that it is projected."""
MOST_GROWTH = 1.5
"""A trend is trusted for at most this much growth, as a share of the present rate."""
_NOISE_S = 120.0


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests a second: `level` now, `trend` by which it changes each second, and `excess`, how many times more it
    varies than arrivals that know nothing of each other. `last`: the newest that was measured; `rises`: by how much
    more each second the latest were than those before them; `jumped`: the last was more than chance makes of what came
    before.
    """

    level: float = 0.0
    trend: float = 0.0
    excess: float = 1.0
    last: float = 0.0
    rises: tuple[float, ...] = ()
    jumped: bool = False

    @staticmethod
    def of(measured: float) -> "Demand":
        """By the first that was measured."""
        return Demand(measured, last=measured)

    def after(self, measured: float, elapsed_s: float, over_s: float) -> "Demand":
        """Once another rate was measured, over `over_s` seconds and `elapsed_s` after the last one."""
        if elapsed_s <= 0:
            return self
        foreseen = self.level + self.trend * elapsed_s
        gap, chance = measured - foreseen, self._chance(max(self.level, measured), over_s)
        sudden = abs(gap) > _SURPRISE * chance
        calm = min(max(gap, -_SURPRISE * chance), _SURPRISE * chance)
        follow = 1 - exp(-elapsed_s / _LEVEL_S)
        level = max(0.0, foreseen + (gap if sudden else follow * gap))
        trend = self.trend + (1 - exp(-elapsed_s / _TREND_S)) * follow * calm / elapsed_s
        rises = (*self.rises, (measured - self.last) / elapsed_s)[-_RISES:]
        return Demand(level, trend, self._varies(calm / chance, elapsed_s), measured, rises, gap > _SURPRISE * chance)

    def expected(self, ahead_s: float, over_s: float) -> float:
        """The rate in `ahead_s`, if it grows on; the present level if it falls, or if its growth may be chance."""
        growth = self.trend * ahead_s
        chance = self._chance(self.level, over_s)
        if growth <= _CERTAIN * chance:
            growth = 0.0
        if len(self.rises) == _RISES and sum(self.rises) * over_s > _SURPRISE * chance:
            least = min(self.rises)
            growth = max(growth, least * ahead_s if least >= _EVEN * max(self.rises) else 0.0)
        return self.level + min(growth, MOST_GROWTH * self.level)

    def noise(self, over_s: float) -> float:
        """The standard deviation that the level itself has by chance, as the mean of what was measured of late."""
        return self._chance(self.level, over_s + 2 * _LEVEL_S)

    def _varies(self, surprise: float, elapsed_s: float) -> float:
        share = 1 - exp(-elapsed_s / _NOISE_S)
        return max(1.0, self.excess + share * (surprise * surprise - 1) * self.excess)

    def _chance(self, rate: float, over_s: float) -> float:
        """The standard deviation of a rate counted over so many seconds."""
        return sqrt(self.excess * max(rate, 1 / over_s) / over_s)

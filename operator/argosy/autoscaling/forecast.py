"""Forecast of requests per second: a level with a stated confidence, and growth where it is significant.

The level is the mean over the longest recent stretch that chance can explain. From the newest reading back, each longer
stretch has a mean and a confidence interval; the stretch ends before the interval that no longer meets all shorter ones
(the rule of intersecting confidence intervals, Goldenshluger and Nemirovski 1997). So the estimate of a constant load
becomes more precise, and a jump is followed within one or two readings.
"""

from itertools import accumulate, pairwise
from math import hypot, inf, sqrt

from msgspec import Struct

from argosy.autoscaling.settings import CONFIDENCE, GROWTH_S, MEMORY_S, MOST_GROWTH

_RISES, _FEW = 3, 1e-9

Readings = tuple[tuple[float, float], ...]
"""(requests, seconds), the newest first."""


class Forecast(Struct, frozen=True):
    """Requests per second: the present `level`, its standard `error`, and the `growth` per second, 0 if not certain."""

    readings: Readings = ()
    level: float = 0.0
    error: float = 0.0
    growth: float = 0.0

    def after(self, rate: float, seconds: float) -> "Forecast":
        """Return the forecast updated with a rate that was measured over `seconds`."""
        if seconds <= 0:
            return self
        readings = ((rate * seconds, seconds), *self.readings)
        newer_s = accumulate((lasted for _, lasted in readings), initial=0.0)
        readings = tuple(reading for reading, newer in zip(readings, newer_s, strict=False) if newer < MEMORY_S)
        excess = _excess(readings)
        level, error = _level(readings, excess)
        return Forecast(readings, level, error, _growth(readings, excess))

    def expected(self, ahead_s: float) -> float:
        """Return the expected rate in `ahead_s` seconds: the present level, plus growth where it is certain."""
        return self.level + min(self.growth * (ahead_s + GROWTH_S / 2), MOST_GROWTH * self.level)


def _excess(readings: Readings) -> float:
    """Return the ratio of the readings' variance to that of Poisson arrivals, at least 1.

    It is estimated from differences of neighbouring readings, so a slope adds little; each is capped at `CONFIDENCE`
    standard errors, so a step adds little, too.
    """
    squares = []
    for (count, seconds), (before, lasted) in pairwise(readings):
        if count + before > _FEW:
            error = sqrt((count + before) / (seconds + lasted) * (1 / seconds + 1 / lasted))
            squares.append(min(abs(count / seconds - before / lasted) / error, CONFIDENCE) ** 2)
    return max(1.0, sum(squares) / len(squares)) if squares else 1.0


def _error(rate: float, seconds: float, excess: float) -> float:
    """Return the standard error of a rate that was counted over `seconds`."""
    return sqrt(excess * max(rate, 1 / seconds) / seconds)


def _level(readings: Readings, excess: float) -> tuple[float, float]:
    count = seconds = level = error = low = 0.0
    high = inf
    for came, lasted in readings:
        count, seconds = count + came, seconds + lasted
        mean, off = count / seconds, _error(count / seconds, seconds, excess)
        low, high = max(low, mean - CONFIDENCE * off), min(high, mean + CONFIDENCE * off)
        if low > high:
            break
        level, error = mean, off
    return level, error


def _growth(readings: Readings, excess: float) -> float:
    """Return the growth of the rate per second; 0 unless three consecutive rises are certain: a step causes two."""
    means, count, seconds = [], 0.0, 0.0
    for came, lasted in readings:
        count, seconds = count + came, seconds + lasted
        if seconds >= GROWTH_S:
            means.append(count / seconds)
            count = seconds = 0.0
    for newer, older in pairwise(means[: _RISES + 1]):
        chance = hypot(_error(newer, GROWTH_S, excess), _error(older, GROWTH_S, excess))
        if newer - older <= CONFIDENCE * chance:
            return 0.0
    return (means[0] - means[_RISES]) / (_RISES * GROWTH_S) if len(means) > _RISES else 0.0

"""Where the better of two endpoints changes, by the logarithm of the ratio of their rates at each concurrency.

Above 0 the first endpoint is better. The crossing divides the levels so that choosing one endpoint below and the other
above gains the most; small differences in between, which noise may reverse, do not move it. It is interpolated linearly
over the logarithm of the concurrency. Its uncertainty comes from drawing the ratios again within their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_T_975 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)
"""Student's t for a two-sided interval of 95 %, by degrees of freedom from 1."""
_T_MANY = 2.0
_DRAWS = 2000
CONFIDENT = 0.9
"""Share of the draws that must cross in the same direction: below it the crossing may be noise."""


@dataclass(frozen=True, slots=True)
class LogRatio:
    """Mean of the logarithm of first over second at one concurrency. `error`: its standard error, None if unknown."""

    concurrency: int
    mean: float
    error: float | None
    repetitions: int

    @classmethod
    def of(cls, concurrency: int, ratios: Sequence[float]) -> "LogRatio":
        """Return the mean of the ratios of paired repetitions, which are above 0."""
        logs = [log(ratio) for ratio in ratios]
        mean = sum(logs) / len(logs)
        if len(logs) == 1:
            return cls(concurrency, mean, None, 1)
        variance = sum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
        return cls(concurrency, mean, sqrt(variance / len(logs)), len(logs))

    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the ratio itself."""
        if self.error is None:
            return None
        degrees = self.repetitions - 1
        margin = self.error * (_T_975[degrees - 1] if degrees <= len(_T_975) else _T_MANY)
        return exp(self.mean - margin), exp(self.mean + margin)


@dataclass(frozen=True, slots=True)
class Crossing:
    """`first_below`: the first endpoint is better below. `index`: of the first level above the crossing."""

    concurrency: float
    first_below: bool
    index: int
    low: float | None = None
    high: float | None = None
    confidence: float | None = None


def crossing(levels: Sequence[LogRatio], seed: int = 0) -> Crossing | None:
    """Return the crossing of levels in rising concurrency, or None where one endpoint dominates or noise may decide."""
    concurrencies = np.array([level.concurrency for level in levels], dtype=np.float64)
    point = _crossing(concurrencies, np.array([level.mean for level in levels]))
    if point is None or any(level.error is None for level in levels):
        return point
    draws = [_crossing(concurrencies, means) for means in _drawn(levels, seed)]
    alike = [draw.concurrency for draw in draws if draw is not None and draw.first_below == point.first_below]
    confidence = len(alike) / len(draws)
    if confidence < CONFIDENT:
        return None
    low, high = np.percentile(alike, (2.5, 97.5))
    return Crossing(point.concurrency, point.first_below, point.index, float(low), float(high), confidence)


def _drawn(levels: Sequence[LogRatio], seed: int) -> Floats:
    """Return means drawn within their uncertainty: a row for each draw."""
    random = np.random.default_rng(seed)
    noise = [random.standard_t(level.repetitions - 1, _DRAWS) * (level.error or 0.0) for level in levels]
    return np.array([level.mean for level in levels]) + np.array(noise).T


def _crossing(concurrencies: Floats, means: Floats) -> Crossing | None:
    if len(means) < 2:
        return None
    below = np.cumsum(means)
    # Gain over choosing either endpoint at all levels, by the number of levels below the crossing.
    gains = 2 * below[:-1] - below[-1]
    index = int(np.argmax(np.abs(gains)))
    if abs(gains[index]) <= abs(below[-1]) or means[index] * means[index + 1] >= 0:
        return None
    share = means[index] / (means[index] - means[index + 1])
    logs = np.log(concurrencies)
    at = logs[index] + share * (logs[index + 1] - logs[index])
    return Crossing(float(np.exp(at)), bool(gains[index] > 0), index + 1)

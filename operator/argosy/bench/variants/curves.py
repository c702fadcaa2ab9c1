"""What an endpoint does at a rate of requests, between the levels of its closed loops, by Little's law."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from argosy.bench.comparison import MOST_ERRORS
from argosy.bench.results import LevelResult, Percentiles

Latency = Callable[[LevelResult], Percentiles | None]
"""The latency of a level that an objective is for."""


@dataclass(frozen=True, slots=True)
class Point:
    """A load between two levels: `share` of the way from `below` to `above`."""

    below: LevelResult
    above: LevelResult
    share: float

    def value(self, latency: Latency, percentile: str) -> float | None:
        """Return a percentile of a latency in seconds, interpolated; None if a level did not measure it."""
        below, above = latency(self.below), latency(self.above)
        if below is None or above is None:
            return None
        first: float = getattr(below, percentile)
        last: float = getattr(above, percentile)
        return first + self.share * (last - first)


@dataclass(frozen=True, slots=True)
class Curve:
    """One endpoint's closed loops at which requests succeeded, in rising concurrency."""

    levels: Sequence[LevelResult]

    @classmethod
    def of(cls, endpoint: str, levels: Sequence[LevelResult]) -> "Curve":
        """Return the curve of an endpoint, which may have no levels."""
        usable = [
            level
            for level in levels
            if level.endpoint == endpoint
            and level.concurrency
            and level.latency is not None
            and level.errors <= MOST_ERRORS * level.requests
        ]
        return cls(sorted(usable, key=lambda level: level.concurrency or 0))

    def at(self, rate: float) -> Point | None:
        """Return the load at which so many requests are answered a second, the lowest one; None if none reaches it."""
        if self.levels and rate <= self.levels[0].requests_per_second:
            return Point(self.levels[0], self.levels[0], 0.0)
        for below, above in pairwise(self.levels):
            first, last = below.requests_per_second, above.requests_per_second
            if first < rate <= last:
                return Point(below, above, (rate - first) / (last - first))
        return None

    def most(self, accepts: Callable[[Point], bool] = lambda point: True) -> float:
        """Return the most requests answered a second at an accepted level; 0 if there is none."""
        rates = [level.requests_per_second for level in self.levels if accepts(Point(level, level, 0.0))]
        return max(rates, default=0.0)


def total_latency(level: LevelResult) -> Percentiles | None:
    """Return the time until answers are complete: the duration in Little's law."""
    return level.latency

"""Histograms of durations: what was added to one, the sum of several, and percentiles."""

from bisect import bisect_left
from dataclasses import dataclass
from math import inf
from operator import add, lt, sub

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


@dataclass(frozen=True, slots=True)
class Distribution:
    """The mean and the percentiles of a duration, over all servers."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p999: float | None = None

    def percentile(self, name: str) -> float | None:
        """Return a percentile by its name in an SLO, such as `p99`."""
        percentile: float | None = getattr(self, name)
        return percentile


UNMEASURED = Distribution()


@dataclass(frozen=True, slots=True)
class Histogram:
    """`counts` of the durations up to each of `bounds` (seconds, rising, the last infinite), and all durations' sum."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total_s: float = 0.0

    def __sub__(self, before: "Histogram") -> "Histogram":
        """Return what was added since `before`: everything if it restarted since, or has other bounds now."""
        if self.bounds != before.bounds or any(map(lt, self.counts, before.counts)):
            return self
        return Histogram(self.bounds, tuple(map(sub, self.counts, before.counts)), self.total_s - before.total_s)

    def __add__(self, other: "Histogram") -> "Histogram":
        """Return the durations of both, counted at the bounds that both have."""
        if self.bounds != other.bounds:
            bounds = tuple(sorted(set(self.bounds) & set(other.bounds)))
            return self._at(bounds) + other._at(bounds)
        return Histogram(self.bounds, tuple(map(add, self.counts, other.counts)), self.total_s + other.total_s)

    def _at(self, bounds: tuple[float, ...]) -> "Histogram":
        counts = dict(zip(self.bounds, self.counts, strict=True))
        return Histogram(bounds, tuple(counts[bound] for bound in bounds), self.total_s)

    def quantile(self, share: float) -> float | None:
        """Return the seconds that this share (above 0, up to 1) of the durations did not exceed. There is at least one.

        Interpolates within a bucket, as Prometheus's `histogram_quantile` does, up to the last finite bound. None if
        there is no such bound.
        """
        rank = share * self.counts[-1]
        index = bisect_left(self.counts, rank)
        low, below = (self.bounds[index - 1], self.counts[index - 1]) if index else (0.0, 0.0)
        high = self.bounds[index]
        if high == inf:
            return low if index else None
        inside = self.counts[index] - below
        return low + (high - low) * (rank - below) / inside if inside > 0 else low  # so few that the rank is 0

    def distribution(self) -> Distribution:
        """Return the mean and the percentiles."""
        if not self.counts[-1]:
            return UNMEASURED
        return Distribution(self.total_s / self.counts[-1], *map(self.quantile, SHARES.values()))

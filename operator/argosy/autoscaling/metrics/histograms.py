"""Arithmetic of histograms: what was added between two, several servers together, and percentiles."""

from collections.abc import Iterable
from itertools import pairwise
from math import inf, isfinite

from .series import Histogram
from .signals import Distribution

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def is_sound(histogram: Histogram) -> bool:
    """Return whether it can be so: bounds and counts rise, the last bound is infinite, nothing is NaN or negative."""
    bounds, counts = histogram.bounds, histogram.counts
    if not bounds or len(bounds) != len(counts) or bounds[-1] != inf:
        return False
    rising = all(low < high for low, high in pairwise(bounds)) and all(low <= high for low, high in pairwise(counts))
    return rising and counts[0] >= 0 and isfinite(counts[-1]) and isfinite(histogram.total_s)


def increase(before: Histogram, after: Histogram) -> Histogram:
    """Return what came between the two; all of `after` where it began again, or has other bounds."""
    if before.bounds != after.bounds or _shrank(before, after):
        return after
    counts = tuple(now - then for then, now in zip(before.counts, after.counts, strict=True))
    return Histogram(after.bounds, counts, after.total_s - before.total_s)


def _shrank(before: Histogram, after: Histogram) -> bool:
    return any(now < then for then, now in zip(before.counts, after.counts, strict=True))


def together(histograms: Iterable[Histogram]) -> Histogram | None:
    """Return all of them as one, exactly: of servers with different bounds those that all have. None of none."""
    present = list(histograms)
    if not present:
        return None
    first = present[0].bounds
    if all(one.bounds == first for one in present):
        bounds = first
    else:
        bounds = tuple(sorted(set(first).intersection(*(one.bounds for one in present[1:]))))
    columns = [one.counts if one.bounds == bounds else _at(one, bounds) for one in present]
    return Histogram(bounds, tuple(map(sum, zip(*columns, strict=True))), sum(one.total_s for one in present))


def _at(histogram: Histogram, bounds: tuple[float, ...]) -> tuple[float, ...]:
    measured = dict(zip(histogram.bounds, histogram.counts, strict=True))
    return tuple(measured[bound] for bound in bounds)


def quantile(histogram: Histogram, share: float) -> float | None:
    """Return the duration, in seconds, that this share (0 to 1) of them did not exceed; None of none.

    Within a bucket they are taken to lie evenly, as Prometheus's `histogram_quantile` does; of what lies beyond the
    last finite bound only that bound is known.
    """
    rank = share * histogram.count
    if not histogram.count:
        return None
    low_bound, low_count = 0.0, 0.0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=True):
        if count >= rank and count > low_count:
            if bound == inf:
                return low_bound
            return low_bound + (bound - low_bound) * max(rank - low_count, 0.0) / (count - low_count)
        low_bound, low_count = bound, count
    return None


def distribution(histogram: Histogram | None) -> Distribution:
    """Return its mean and percentiles."""
    if histogram is None or not histogram.count:
        return Distribution()
    percentiles = {name: quantile(histogram, share) for name, share in SHARES.items()}
    return Distribution(mean=histogram.total_s / histogram.count, **percentiles)

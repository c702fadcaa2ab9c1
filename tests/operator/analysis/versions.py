"""Signals of versions for tests of the analysis, drawn by a seed."""

from bisect import bisect_left
from functools import reduce
from math import inf
from operator import add

import numpy as np

from argosy.autoscaling.metrics.durations import Durations
from argosy.autoscaling.metrics.histograms import Histogram
from argosy.autoscaling.metrics.version_counts import Executions, VersionSignals

BOUNDS_MS = (1, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000)
BOUNDS = (*[bound / 1000 for bound in BOUNDS_MS], inf)
SIZES = (1, 2, 4, 8, 16, inf)


def durations(seconds: np.ndarray) -> Durations | None:
    """Return durations of one reading."""
    counts = np.searchsorted(np.sort(seconds), BOUNDS, side="right")
    return Durations.read(Histogram(BOUNDS, tuple(map(float, counts)), float(seconds.sum())))


def executions(rows: np.ndarray, seconds: np.ndarray) -> dict[float, Executions]:
    """Return executions of one reading by the size of their batches."""
    sizes: dict[float, list[int]] = {}
    for index, number in enumerate(rows):
        sizes.setdefault(SIZES[bisect_left(SIZES, number)], []).append(index)
    return {
        size: Executions.read(len(which), float(rows[which].sum()), float(seconds[which].sum()))
        for size, which in sizes.items()
    }


def answered(requests: int, failed: int = 0, seconds: float = 1.0) -> VersionSignals:
    """Return requests of which some were answered with an error of the model."""
    return VersionSignals(seconds, answered=requests, errors=failed)


def total(*signals: VersionSignals) -> VersionSignals:
    return reduce(add, signals, VersionSignals())

"""Two versions of a model on one server, simulated: real batching, requests divided by weight, readings each second."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.metrics.durations import Durations
from argosy.autoscaling.metrics.histograms import Histogram
from argosy.autoscaling.metrics.version_counts import Executions, VersionSignals
from argosy.simulation.servers.batching import BatchingServer
from argosy.simulation.service import ServiceCurve
from argosy.simulation.traces import Floats
from argosy_runtime.histograms import DURATION_BOUNDS

BOUNDS = (*(bound / 1e9 for bound in DURATION_BOUNDS), inf)
"""The buckets of a server's histograms, in seconds."""
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, inf)
"""The sizes of batches by which a server sums executions."""


@dataclass(frozen=True)
class Quality:
    """How a version answers: seconds of an execution by its rows, and the share of requests that fail: each by itself,
    or all of one batch.
    """

    curve: ServiceCurve
    failing: float = 0.0
    by_batch: bool = False


class Version:
    """One version with its own queue and one instance. Requests or executions fail by chance."""

    def __init__(self, quality: Quality, window_s: float, seed: int) -> None:
        self._server = BatchingServer(quality.curve, Allocation(1, 1, window_s, None), 0.0, seed)
        self._quality, self._window_s = quality, window_s
        self._random = np.random.default_rng(seed)
        self._open = np.zeros((3, 0))

    def read(self, arrivals: Floats, since: float, until: float) -> VersionSignals:
        """Return what a reading at `until` finds in addition to that at `since`, between which requests arrive."""
        self._server.offer(arrivals.tolist(), range(0))
        self._server.advance(until)
        served = self._server.served
        new = np.array([served.arrived, served.started, served.ended])
        for column in (served.arrived, served.started, served.ended, served.over, served.lasting):
            column.clear()
        every = np.concatenate([self._open, new], axis=1)
        over = every[2] <= until
        self._open = every[:, ~over]
        arrived, started, ended = every[:, over]
        failed = self._failed(started)
        signals = VersionSignals(
            until - since,
            answered=len(ended),
            errors=failed,
            latency=_durations(ended - arrived),
            queue=_durations(started - arrived),
            executions=_executions(started, ended),
            queue_delay_s=self._window_s,
        )
        return signals.as_reading()

    def _failed(self, started: Floats) -> int:
        """Return how many of the requests that were started then have failed."""
        if not self._quality.by_batch:
            return int(self._random.binomial(len(started), self._quality.failing))
        rows = np.unique(started, return_counts=True)[1]
        return int(rows[self._random.random(len(rows)) < self._quality.failing].sum())


def _durations(seconds: Floats) -> Durations | None:
    counts = np.searchsorted(np.sort(seconds), BOUNDS, side="right")
    return Durations.read(Histogram(BOUNDS, tuple(map(float, counts)), float(seconds.sum())))


def _executions(started: Floats, ended: Floats) -> Mapping[float, Executions]:
    """Return the executions by the size of their batches: all requests of one batch start at one time."""
    starts, first, rows = np.unique(started, return_index=True, return_counts=True)
    lasting = ended[first] - starts
    sums: dict[float, list[float]] = {}
    for count, seconds in zip(rows.tolist(), lasting.tolist(), strict=True):
        size = sums.setdefault(SIZES[bisect_left(SIZES, count)], [0, 0, 0.0])
        size[0] += 1
        size[1] += count
        size[2] += seconds
    return {size: Executions.read(count, total, seconds) for size, (count, total, seconds) in sums.items()}


class Arrivals:
    """A Poisson process whose requests are divided among two versions by weight."""

    def __init__(self, rate: float, seed: int) -> None:
        self._rate, self._random = rate, np.random.default_rng(seed)
        self._debt = 0.0

    def between(self, since: float, until: float, share: float) -> tuple[Floats, Floats]:
        """Return the arrivals of the stable version and of the candidate, which gets `share` of them: interleaved."""
        count = int(self._random.poisson(self._rate * (until - since)))
        every = np.sort(self._random.uniform(since, until, count))
        due = self._debt + share * np.arange(1, count + 1)
        turns = np.floor(due) > np.floor(np.append(self._debt, due[:-1])) if count else np.zeros(0, dtype=bool)
        self._debt = float(due[-1] % 1) if count else self._debt
        return every[~turns], every[turns]

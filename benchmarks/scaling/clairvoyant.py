"""A plan by who knows every request beforehand: no contender, but what the others may be held against."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import ceil

import numpy as np

from argosy.autoscaling.decision import NOBODY, Allocation
from argosy.planning.amounts import counted
from argosy.simulation.autoscalers.autoscaler import Seen
from argosy.simulation.servers.engine import EngineCurve
from argosy.simulation.traces import Floats

from .baselines import Baseline
from .cases import MOST, Case

CLAIRVOYANT = "clairvoyant"
_MEAN_S = (20, 60, 120, 300)
"""What the load is the mean of, half before and half after."""
_MORE = (0.95, 1.0, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0)
"""Of the replicas that would just do the work with full batches."""
_INTERVAL_S = 5


class Plan:
    """`replicas` for each second. A replica is asked for as long beforehand as it takes to start."""

    interval_s = float(_INTERVAL_S)
    wakes = True
    reason = "as planned"
    ejection = NOBODY

    def __init__(self, replicas: Floats, startup_s: float) -> None:
        self._replicas, self._ahead_s = replicas, ceil(startup_s) + _INTERVAL_S

    def decide(self, seen: Seen) -> Allocation:
        """The most until what would be asked for next is there."""
        now = min(int(seen.now), len(self._replicas) - 1)
        wanted = int(self._replicas[now : now + self._ahead_s].max())
        return seen.within_room(max(wanted, 1 if seen.held else 0))


def plans(case: Case) -> Iterator[Baseline]:
    """By means of the load over more or less time, with more or less to spare, rounded or rounded up; with one
    instance on a device, or as many as do most.
    """
    for instances, mean_s in product(_instances(case), _MEAN_S):
        mean = np.convolve(_work(case, instances), np.ones(mean_s) / mean_s, mode="same")
        yield from _plans(case, mean, mean_s, instances)


def _plans(case: Case, mean: Floats, mean_s: int, instances: int) -> Iterator[Baseline]:
    fewest, startup_s = float(case.policy.bounds.min_replicas), case.workload.startup_s
    for more, rounded in product(_MORE, (np.round, np.ceil)):
        replicas = np.clip(rounded(more * mean), fewest, MOST)
        words = f"mean of {mean_s} s, {more:.0%} of it, {'up' if rounded is np.ceil else 'rounded'}"
        words = f"{words}, {counted(instances, 'instance')}"
        start = Allocation(max(1, int(replicas[: ceil(startup_s)].max())), instances)
        yield Baseline(CLAIRVOYANT, words, partial(Plan, replicas, startup_s), start)


def _instances(case: Case) -> list[int]:
    curve, most = case.workload.curve, case.policy.bounds.max_instances
    return [1] if isinstance(curve, EngineCurve) else sorted({1, max(range(1, most + 1), key=curve.throughput)})


def _work(case: Case, instances: int) -> Floats:
    """Replicas' seconds with full batches that come in each second."""
    trace, curve = case.workload.trace, case.workload.curve
    if not isinstance(curve, EngineCurve):
        seconds = np.full(len(trace.arrivals), 1 / curve.throughput(instances))
    else:
        assert trace.prompts is not None
        assert trace.outputs is not None
        sizes = zip(trace.prompts.tolist(), trace.outputs.tolist(), strict=True)
        seconds = np.array([1 / curve.throughput(prompt, output) for prompt, output in sizes])
    return np.bincount(trace.arrivals.astype(int), weights=seconds, minlength=ceil(trace.seconds)).astype(np.float64)

"""Settings of a model that its curve suggests, for a latency budget.

A request waits, at worst, until its batch is sent, then for the batch that is executed before it, and then for its own:
delay + 2 x p95 has to be within the budget. Of the settings that keep it, the one with the most rows a second counts;
of those that are nearly as good, the one with the fewest instances, and then the smallest batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from argosy.bench.profile.points import Point, Sweep

NEARLY: Final = 0.95
"""Share of the most rows a second from which on more memory and more latency buy too little."""
_PEAK: Final = 1.05
"""How many times the rows a second of its neighbours a size of batches must have to be preferred to them."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The settings, with the point that they were measured at. `delay` in seconds; `latency`: the longest that a
    request takes by this arithmetic, in seconds.
    """

    point: Point
    delay: float
    preferred: tuple[int, ...]
    latency: float


def knee(curve: Sequence[Point]) -> Point | None:
    """Return the point with the smallest batches that has nearly the most rows a second; None of no points."""
    most = max((point.throughput for point in curve), default=0.0)
    return next((point for point in curve if point.throughput >= NEARLY * most), None)


def latency(point: Point) -> float:
    """Return the seconds that a request takes at worst without a queue delay: an execution before it, and its own."""
    return 2 * point.p95


def propose(sweep: Sweep, budget: float | None = None) -> Proposal | None:
    """Return the settings for a budget in seconds, or without one at the knee; None where no point keeps the budget."""
    within = [point for point in sweep.points if budget is None or latency(point) <= budget]
    most = max((point.throughput for point in within), default=0.0)
    good = [point for point in within if point.throughput >= NEARLY * most]
    best = min(good, key=lambda point: (point.instances, point.batch), default=None)
    if best is None:
        return None
    delay = _delay(best, budget)
    preferred = _preferred([point for point in sweep.curve(best.instances) if point.batch <= best.batch])
    return Proposal(best, delay, preferred, latency(best) + delay)


def _delay(point: Point, budget: float | None) -> float:
    """Return how long a batch may wait for more rows: what the budget leaves, at most until the next instance is free.

    A batch that waits longer is filled while instances are busy. Without batches, or a budget, nothing waits.
    """
    if budget is None or point.batch < 2:
        return 0.0
    return min(budget - latency(point), point.p50 / point.instances)


def _preferred(curve: Sequence[Point]) -> tuple[int, ...]:
    """Return the sizes of batches with clearly more rows a second than the next larger one; the largest size needs no
    preference.
    """
    return tuple(one.batch for one, larger in pairwise(curve) if one.throughput >= _PEAK * larger.throughput)

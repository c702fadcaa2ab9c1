"""What one replica holds within its targets, and the cheapest setting of it that is enough."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from argosy.autoscaling.capacity.queueing import Curve, Replica, within
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.policy import Bounds, Targets

_WINDOWS = (0.0, 0.25, 0.5, 1.0)
"""Of the longest window: what is tried, shortest first."""
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_MEAN = 0.5
_LATE_AS_PLANNED = 0.03
"""Of those that a percentile lets be late: the rest is left to what no plan foresees."""
_WORTH_IT = 1.25
"""How many times as much a setting must hold to be preferred to a cheaper one."""


class Limits(Struct, frozen=True):
    """What is to be held, in the form that a replica's rate follows from: (percentile, seconds), of latency and of
    waiting; `busy`: the most of its capacity with full batches that may be in use.
    """

    latency: tuple[tuple[str, float], ...]
    waiting: tuple[tuple[str, float], ...]
    queue_share: float | None
    busy: float

    @staticmethod
    def of(targets: Targets, service: Service) -> "Limits":
        """Of the targets, those that the model can reach at all: one below its own time for a row limits nothing."""
        alone = service.seconds(1.0)
        reachable = tuple(sorted((name, limit) for name, limit in targets.latency.items() if limit > alone))
        waiting = tuple(sorted(targets.queue_delay.items()))
        return Limits(reachable, waiting, targets.queue_share, targets.busy_high)


def strictest(percentiles: Iterable[str]) -> str:
    """Return the highest of these; none without one."""
    return max(percentiles, key=lambda name: SHARES[name], default="")


def planned(percentile: str) -> float:
    """Return the share of requests that is to hold what the percentile is the target of."""
    return 1 - _LATE_AS_PLANNED * (1 - SHARES[percentile])


class Setting(Struct, frozen=True):
    """What a replica may be set to in place, and the rows a second that it then holds."""

    instances: int
    window_s: float | None
    rate: float


@lru_cache(maxsize=100_000)
def settings(
    service: Service, limits: Limits, bounds: Bounds, most_instances: int, max_batch: int, variation: float
) -> tuple[Setting, ...]:
    """Return every setting that holds more than all before it, the cheapest first: few instances, a short window."""
    better: list[Setting] = []
    for instances, window_s in _tried(bounds, most_instances):
        replica = Replica(service, instances, bounds.devices, max_batch, window_s or 0.0, variation)
        least = better[-1].rate * _WORTH_IT if better else 0.0
        rate = held(replica, limits, least)
        if rate > least or not better:
            better.append(Setting(instances, window_s, rate))
    return tuple(better)


def held(replica: Replica, limits: Limits, least: float = 0.0) -> float:
    """Return the most rows a second that a replica holds within all limits; 0 where that is less than `least`."""
    rate = limits.busy * replica.most
    for curve, longest in _curves(replica, limits):
        if rate <= least:
            return 0.0
        rate = within(curve, longest, rate, least)
    return rate


def _curves(replica: Replica, limits: Limits) -> Iterator[tuple[Curve, float]]:
    """What is limited, each with its limit in seconds."""
    for name, longest in limits.latency:
        yield Curve(replica, planned(name)), longest
    for name, longest in limits.waiting:
        yield Curve(replica, planned(name), waiting=True), longest
    if limits.queue_share is not None and limits.queue_share < 1:
        alone = replica.seconds(1.0)
        yield Curve(replica, _MEAN, waiting=True), alone * limits.queue_share / (1 - limits.queue_share)


def _tried(bounds: Bounds, most_instances: int) -> Iterator[tuple[int, float | None]]:
    longest = bounds.max_window_s
    for instances in range(bounds.min_instances, max(bounds.min_instances, most_instances) + 1):
        if longest is None:
            yield instances, None
        else:
            yield from ((instances, share * longest) for share in _WINDOWS)

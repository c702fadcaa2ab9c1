"""What a replica may be set to in place, and the rows a second that it then holds within its targets."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from argosy.autoscaling.capacity.queueing import Replica
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.metrics.histograms import SHARES
from argosy.autoscaling.policy import Bounds, Targets
from argosy.autoscaling.settings import PLANNED_OVERDUE, WORTH


class Limits(Struct, frozen=True):
    """What limits a replica's rate: (percentile, seconds) of latency and of waiting; `busy`: the most of its capacity
    with full batches that may be in use.
    """

    latency: tuple[tuple[str, float], ...]
    waiting: tuple[tuple[str, float], ...]
    queue_share: float | None
    busy: float

    @staticmethod
    def of(targets: Targets, service: Service) -> "Limits":
        """Return the targets that the model can reach at all: one below its own time for a row limits nothing."""
        alone = service.seconds(1.0)
        reachable = tuple(sorted((name, limit) for name, limit in targets.latency.items() if limit > alone))
        return Limits(reachable, tuple(sorted(targets.queue_delay.items())), targets.queue_share, targets.busy_high)


def strictest(percentiles: Iterable[str]) -> str:
    """Return the highest of these; an empty text without one."""
    return max(percentiles, key=lambda name: SHARES[name], default="")


def planned(percentile: str) -> float:
    """Return the share of requests that is planned to hold what the percentile is the target of."""
    return 1 - PLANNED_OVERDUE * (1 - SHARES[percentile])


class Option(Struct, frozen=True):
    """A setting of a replica, and the rows a second that it then holds."""

    instances: int
    window_s: float | None
    rate: float


@lru_cache(maxsize=100_000)
def options(
    service: Service, limits: Limits, bounds: Bounds, most_instances: int, max_batch: int
) -> tuple[Option, ...]:
    """Return every setting that holds more than all before it, the cheapest first: few instances, then no window."""
    better: list[Option] = []
    for instances in range(bounds.min_instances, max(bounds.min_instances, most_instances) + 1):
        for window_s in (None,) if bounds.max_window_s is None else (0.0, bounds.max_window_s):
            replica = Replica(service, instances, bounds.devices, max_batch, window_s or 0.0)
            rate = _within(replica, limits)
            if not better or rate > WORTH * better[-1].rate:
                better.append(Option(instances, window_s, rate))
    return tuple(better)


def _within(replica: Replica, limits: Limits) -> float:
    """Return the most rows a second that a replica holds within all limits."""
    rate = limits.busy * replica.most
    for share, limit_s, waiting in _curves(replica, limits):
        rate = replica.within(limit_s, share, rate, waiting=waiting)
    return rate


def _curves(replica: Replica, limits: Limits) -> Iterator[tuple[float, float, bool]]:
    """Yield the share of requests and the seconds of each limit, and whether it is of waiting alone."""
    for name, limit_s in limits.latency:
        yield planned(name), limit_s, False
    for name, limit_s in limits.waiting:
        yield planned(name), limit_s, True
    if limits.queue_share is not None and limits.queue_share < 1:
        yield 0.5, replica.seconds(1.0) * limits.queue_share / (1 - limits.queue_share), True

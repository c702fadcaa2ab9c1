"""What a replica may be set to in place, and the rows a second that it then holds within its targets."""

from functools import lru_cache

from msgspec import Struct

from argosy.autoscaling.capacity.queueing import Replica
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.metrics.histograms import SHARES
from argosy.autoscaling.policy import Bounds, Targets
from argosy.autoscaling.settings import PLANNED_OVERDUE, WORTH

Limits = tuple[tuple[float, float, bool], ...]
"""The share of requests and the seconds of each limit, and whether it is of waiting alone."""


class Option(Struct, frozen=True):
    """A setting of a replica, and the rows a second that it then holds."""

    instances: int
    window_s: float | None
    rate: float


def planned(percentile: str) -> float:
    """Return the share of requests that is planned to hold what the percentile is the target of."""
    return 1 - PLANNED_OVERDUE * (1 - SHARES[percentile])


def limits_of(targets: Targets, service: Service) -> Limits:
    """Return what limits a replica's rate. A latency below the model's own time for a row is out of reach, and limits
    nothing.
    """
    alone, share = service.seconds(1.0), targets.queue_share
    latency = [(planned(name), limit_s, False) for name, limit_s in sorted(targets.latency.items()) if limit_s > alone]
    waiting = [(planned(name), limit_s, True) for name, limit_s in sorted(targets.queue_delay.items())]
    if share is not None and share < 1:
        waiting.append((0.5, alone * share / (1 - share), True))
    return (*latency, *waiting)


@lru_cache(maxsize=100_000)
def options(
    service: Service, limits: Limits, busy: float, bounds: Bounds, most_instances: int, max_batch: int
) -> tuple[Option, ...]:
    """Return every setting that holds more than all before it, the cheapest first: few instances, then no window. At
    most the share `busy` of what a replica does with full batches is used.
    """
    better: list[Option] = []
    for instances in range(bounds.min_instances, max(bounds.min_instances, most_instances) + 1):
        for window_s in (None,) if bounds.max_window_s is None else (0.0, bounds.max_window_s):
            replica = Replica(service, instances, bounds.devices, max_batch, window_s or 0.0)
            rate = busy * replica.most
            for share, limit_s, waiting in limits:
                rate = replica.within(limit_s, share, rate, waiting=waiting)
            if not better or rate > WORTH * better[-1].rate:
                better.append(Option(instances, window_s, rate))
    return tuple(better)

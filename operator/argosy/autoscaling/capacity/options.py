"""Settings of a replica that change in place, with the capacity of each within the targets."""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial

from msgspec import Struct

from argosy.autoscaling.capacity.queueing import Replica
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.metrics.histograms import SHARES
from argosy.autoscaling.policy import Bounds, Targets
from argosy.autoscaling.settings import PLANNED_OVERDUE, WORTH

QUEUE_SHARE = "queue share"
Within = Callable[["Limit", float], float]
"""Returns the largest rate in rows per second that meets a limit, at most the given one."""


class Limit(Struct, frozen=True):
    """A target that limits a replica's rate: a `share` of the requests must take, or only wait (`waiting`), at most
    `seconds`. `metric` is its name, such as `latency p99`.
    """

    metric: str
    share: float
    seconds: float
    waiting: bool = False


class Option(Struct, frozen=True):
    """A setting of a replica, with its capacity `rate` in rows per second. `limit`: the target that bounds the
    capacity, None where the share of its time in use does.
    """

    instances: int
    window_s: float | None
    rate: float
    limit: Limit | None = None


def planned(percentile: str) -> float:
    """Return the share of requests that is planned to meet the target of a percentile; stricter than the percentile."""
    return 1 - PLANNED_OVERDUE * (1 - SHARES[percentile])


def limits_of(targets: Targets, service: Service) -> tuple[Limit, ...]:
    """Return the limits on a replica's rate. A latency target below the execution time of one row cannot be met, and is
    left out.
    """
    alone, share = service.seconds(1.0), targets.queue_share
    limits = [Limit(f"latency {name}", planned(name), s) for name, s in sorted(targets.latency.items()) if s > alone]
    limits += [Limit(f"queue delay {name}", SHARES[name], s, True) for name, s in sorted(targets.queue_delay.items())]
    if share is not None and share < 1:
        limits.append(Limit(QUEUE_SHARE, 0.5, alone * share / (1 - share), waiting=True))
    return tuple(limits)


def limited(most: float, limits: Iterable[Limit], within: Within) -> tuple[float, Limit | None]:
    """Return the most rows a second, at most `most`, that meet all limits, and the limit that decides."""
    strictest = None
    for limit in limits:
        rate = within(limit, most)
        if rate < most:
            most, strictest = rate, limit
    return most, strictest


@lru_cache(maxsize=100_000)
def options(
    service: Service, limits: tuple[Limit, ...], busy: float, bounds: Bounds, most_instances: int, max_batch: int
) -> tuple[Option, ...]:
    """Return the settings in order of cost (instances, then window), each with `WORTH` times the capacity of the one
    before it. The capacity is at most the share `busy` of the throughput with full batches.
    """
    better: list[Option] = []
    for instances in range(bounds.min_instances, max(bounds.min_instances, most_instances) + 1):
        for window_s in (None,) if bounds.max_window_s is None else (0.0, bounds.max_window_s):
            replica = Replica(service, instances, bounds.devices, max_batch, window_s or 0.0)
            rate, limit = limited(busy * replica.most, limits, partial(_within, replica))
            if not better or rate > WORTH * better[-1].rate:
                better.append(Option(instances, window_s, rate, limit))
    return tuple(better)


def _within(replica: Replica, limit: Limit, most: float) -> float:
    return replica.within(limit.seconds, limit.share, most, waiting=limit.waiting)

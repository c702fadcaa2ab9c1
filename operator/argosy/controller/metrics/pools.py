"""Metrics of consolidation in the statuses of pools, made at each scrape, so that deleted pools have none. Pure."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from argosy.api import ServingPool
from argosy.api.consolidationstatus import ConsolidationStatus

_LABELS = ("namespace", "pool")
_AMOUNTS: tuple[tuple[str, str, Callable[[ConsolidationStatus], float]], ...] = (
    (
        "argosy_consolidation_gpus",
        "GPUs that would come free by the recommended moves.",
        lambda status: status.gpus,
    ),
    (
        "argosy_consolidation_bytes",
        "Memory of the replicas that would be moved for them, in bytes.",
        lambda status: status.bytes,
    ),
    ("argosy_consolidation_moving", "Replicas that are being moved.", lambda status: len(status.moving)),
    (
        "argosy_consolidation_moved_bytes",
        "Memory of the replicas whose moves began within the last hour, in bytes.",
        lambda status: sum(record.bytes for record in status.last_hour),
    ),
    (
        "argosy_consolidation_paused",
        "Whether nothing is moved after a move that failed (1).",
        lambda status: float(bool(status.paused_until)),
    ),
)


class PoolMetrics(Collector):
    """Collects the statuses of the pools that `pools` returns. It may be called on any thread."""

    def __init__(self, pools: Callable[[], Iterable[ServingPool]]) -> None:
        self._pools = pools

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all families, also those without samples."""
        statuses = [
            ((pool.namespace, pool.name), pool.status.consolidation)
            for pool in self._pools()
            if pool.status is not None and pool.status.consolidation is not None
        ]
        for name, text, amount in _AMOUNTS:
            family = GaugeMetricFamily(name, text, labels=_LABELS)
            for labels, status in statuses:
                family.add_metric(labels, amount(status))
            yield family

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return nothing, so that registering reads no pools."""
        return iter(())

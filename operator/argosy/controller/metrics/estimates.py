"""Metrics of scaling's estimates: the expected load, the capacity of a replica, service times."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from argosy.api import Member
from argosy.autoscaling.memory import Memory
from argosy.controller.metrics.statuses import Amount, gauges, labels_of

MemberEstimates = tuple[Member, Memory]

_AMOUNTS: tuple[Amount[Memory], ...] = (
    (
        "argosy_scaling_expected_requests_per_second",
        "Expected requests a second: when a new replica would be ready, and to work off what waits.",
        lambda memory: memory.expected if memory.measured.since is not None else None,
    ),
    (
        "argosy_scaling_replica_requests_per_second",
        "Requests a second that one replica at its best setting holds within its targets.",
        lambda memory: memory.holds if memory.measured.since is not None else None,
    ),
    (
        "argosy_scaling_execution_fixed_seconds",
        "Estimated time of an execution that does not depend on its rows.",
        lambda memory: memory.estimates.service.fixed if memory.estimates.service is not None else None,
    ),
    (
        "argosy_scaling_execution_row_seconds",
        "Estimated time that each row adds to an execution.",
        lambda memory: memory.estimates.service.per_row if memory.estimates.service is not None else None,
    ),
    (
        "argosy_scaling_execution_contention",
        "Estimated share by which each other busy instance of its device makes an execution longer.",
        lambda memory: memory.estimates.service.contention if memory.estimates.service is not None else None,
    ),
)


class EstimateMetrics(Collector):
    """Collects the estimates that `estimates` returns, of models and ensembles. It may be called on any thread."""

    def __init__(self, estimates: Callable[[], Iterable[MemberEstimates]]) -> None:
        self._estimates = estimates

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return all families, also those without samples."""
        return gauges(_AMOUNTS, [(labels_of(member), memory) for member, memory in self._estimates()])

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return nothing, so that registering reads no estimates."""
        return iter(())

"""What scaling reckons with, as Prometheus reads it: the load that is expected, what a replica holds, service times."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from argosy.autoscaling.memory import Memory
from argosy.controller.metrics.statuses import Amount, Member, gauges, labels_of

MemberEstimates = tuple[Member, Memory]

_AMOUNTS: tuple[Amount[Memory], ...] = (
    (
        "argosy_scaling_expected_requests_per_second",
        "Requests a second that are reckoned with: when a new replica would be ready, and to work off what waits.",
        lambda memory: memory.expected if memory.measured.since is not None else None,
    ),
    (
        "argosy_scaling_replica_requests_per_second",
        "Requests a second that one replica at its best setting holds within its targets.",
        lambda memory: memory.holds if memory.measured.since is not None else None,
    ),
    (
        "argosy_scaling_execution_fixed_seconds",
        "What each execution takes whatever its rows, as was learnt.",
        lambda memory: memory.estimates.service.fixed if memory.estimates.service is not None else None,
    ),
    (
        "argosy_scaling_execution_row_seconds",
        "What an execution takes more for each row, as was learnt.",
        lambda memory: memory.estimates.service.per_row if memory.estimates.service is not None else None,
    ),
    (
        "argosy_scaling_execution_contention",
        "The share by which each other busy instance of its device makes an execution longer, as was learnt.",
        lambda memory: memory.estimates.service.contention if memory.estimates.service is not None else None,
    ),
)


class EstimateMetrics(Collector):
    """`estimates` returns models and ensembles with their estimates. It may be called on another thread than theirs."""

    def __init__(self, estimates: Callable[[], Iterable[MemberEstimates]]) -> None:
        self._estimates = estimates

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return all families, also those of which nothing is to be said."""
        return gauges(_AMOUNTS, [(labels_of(member), memory) for member, memory in self._estimates()])

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return nothing, so that registering reads no estimates."""
        return iter(())

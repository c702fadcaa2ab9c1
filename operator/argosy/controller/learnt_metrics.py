"""What scaling reckons with, as Prometheus reads it: the load that is expected, what a replica holds, service times."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from argosy.autoscaling.memory import Memory
from argosy.controller.status_metrics import Amount, Member, gauges, labels_of

Learnt = tuple[Member, Memory]

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


class LearntMetrics(Collector):
    """`learnt` gives models and ensembles with what is known of them. It may be asked on another thread than theirs."""

    def __init__(self, learnt: Callable[[], Iterable[Learnt]]) -> None:
        self._learnt = learnt

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return all families, also those of which nothing is to be said."""
        return gauges(_AMOUNTS, [(labels_of(member), memory) for member, memory in self._learnt()])

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing is asked when it is registered."""
        return iter(())

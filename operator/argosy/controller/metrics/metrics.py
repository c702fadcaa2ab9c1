"""Metrics of the operator's own work."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from argosy.api import Member, ServingPool
from argosy.controller.metrics.estimates import EstimateMetrics, MemberEstimates
from argosy.controller.metrics.pools import PoolMetrics
from argosy.controller.metrics.statuses import StatusMetrics

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters of one process. Durations are seconds."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._rounds = Counter(
            "argosy_reconcile_total", "Reconciles of a pool, by result.", ["result"], registry=self.registry
        )
        self._took = Histogram(
            "argosy_reconcile_seconds", "How long a reconcile of a pool took.", registry=self.registry, buckets=SECONDS
        )
        self._waited = Histogram(
            "argosy_reconcile_wait_seconds",
            "How long a pool waited from the first event to its reconcile.",
            registry=self.registry,
            buckets=SECONDS,
        )
        self._queue = Gauge("argosy_reconcile_queue", "Pools that wait for a reconcile.", registry=self.registry)
        self._requests = Counter(
            "argosy_api_requests_total",
            "Requests to the API server, by verb, resource and HTTP status (0: no answer).",
            ["verb", "resource", "status"],
            registry=self.registry,
        )
        self._request_seconds = Histogram(
            "argosy_api_request_seconds",
            "How long a request to the API server took.",
            ["verb"],
            registry=self.registry,
            buckets=SECONDS,
        )
        self._readings = Counter(
            "argosy_signal_readings_total",
            "Readings of a pool's metrics, by result (partial: not all of it could be had).",
            ["result"],
            registry=self.registry,
        )
        self._reading_seconds = Histogram(
            "argosy_signal_reading_seconds",
            "How long a reading of a pool's metrics took.",
            registry=self.registry,
            buckets=SECONDS,
        )
        self.leading = Gauge("argosy_leader", "Whether this replica acts (1) or stands by (0).", registry=self.registry)
        self.resources = Gauge("argosy_resources", "Resources that are declared.", registry=self.registry)
        for result in ("done", "failed"):
            self._rounds.labels(result)
        for result in ("done", "partial"):
            self._readings.labels(result)

    def collect(
        self,
        members: Callable[[], Iterable[Member]],
        estimates: Callable[[], Iterable[MemberEstimates]] = tuple,
        pools: Callable[[], Iterable[ServingPool]] = tuple,
    ) -> None:
        """Expose also the statuses of models, ensembles and pools, and what scaling estimates of members."""
        self.registry.register(StatusMetrics(members))
        self.registry.register(EstimateMetrics(estimates))
        self.registry.register(PoolMetrics(pools))

    def began(self, waited_s: float) -> None:
        """Observe how long a reconcile waited after the first event."""
        self._waited.observe(waited_s)

    def ended(self, took_s: float, failed: bool) -> None:
        """Count a reconcile that ended."""
        self._rounds.labels("failed" if failed else "done").inc()
        self._took.observe(took_s)

    def waiting(self, pools: int) -> None:
        """Set how many pools wait for a reconcile."""
        self._queue.set(pools)

    def request(self, verb: str, resource: str, status: int, took_s: float) -> None:
        """Count a request to the API server; status 0 is no response."""
        self._requests.labels(verb, resource, str(status)).inc()
        if verb != "watch":
            self._request_seconds.labels(verb).observe(took_s)

    def measured(self, took_s: float, failed: bool) -> None:
        """Count a reading of a pool; `failed`: not all of it could be read."""
        self._readings.labels("partial" if failed else "done").inc()
        self._reading_seconds.observe(took_s)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format. With thousands of resources this blocks an event loop."""
        return generate_latest(self.registry)

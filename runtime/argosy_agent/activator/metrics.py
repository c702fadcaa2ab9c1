"""The activator's metrics for Prometheus. Pure."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping

BUCKETS_S = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the histogram of waiting times."""
_QUEUED = "argosy_activator_held_requests"
_REQUESTS = "argosy_activator_requests_total"
_HOLD = "argosy_activator_hold_duration_seconds"


class Metrics:
    """The metrics, by resource name: waiting requests, waiting times, and outcomes."""

    def __init__(self) -> None:
        self._queued: Mapping[str, int] = {}
        self._names: set[str] = set()
        self._outcomes: dict[tuple[str, str], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def queued(self, queued: Mapping[str, int]) -> None:
        """Set the number of requests that wait now."""
        self._queued = queued
        self._names |= queued.keys()

    def waited(self, name: str, seconds: float) -> None:
        """Observe the time that a request waited."""
        buckets = self._buckets.setdefault(name, [0] * (len(BUCKETS_S) + 1))
        buckets[bisect_left(BUCKETS_S, seconds)] += 1
        self._sums[name] = self._sums.get(name, 0.0) + seconds

    def ended(self, name: str, outcome: str) -> None:
        """Count a request that was forwarded, refused, or given up by its client."""
        self._outcomes[name, outcome] = self._outcomes.get((name, outcome), 0) + 1

    def text(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return "".join(f"{line}\n" for line in (*self._gauge(), *self._counter(), *self._histogram()))

    def _gauge(self) -> Iterator[str]:
        yield from _head(_QUEUED, "gauge", "Requests that wait for a server to have the model ready")
        for name in sorted(self._names):
            yield f'{_QUEUED}{{model="{_escaped(name)}"}} {self._queued.get(name, 0)}'

    def _counter(self) -> Iterator[str]:
        yield from _head(_REQUESTS, "counter", "Requests by what became of them")
        for (name, outcome), count in sorted(self._outcomes.items()):
            yield f'{_REQUESTS}{{model="{_escaped(name)}",outcome="{outcome}"}} {count}'

    def _histogram(self) -> Iterator[str]:
        yield from _head(_HOLD, "histogram", "How long a request waited for a server, in seconds")
        for name, buckets in sorted(self._buckets.items()):
            total, model = 0, _escaped(name)
            for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), buckets, strict=True):
                total += count
                yield f'{_HOLD}_bucket{{model="{model}",le="{bound}"}} {total}'
            yield f'{_HOLD}_sum{{model="{model}"}} {self._sums[name]}'
            yield f'{_HOLD}_count{{model="{model}"}} {total}'


def _head(name: str, kind: str, help_text: str) -> tuple[str, str]:
    return f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

"""What several servers' windows of one model tell together.

A sum is known only where each of its parts is. Ratios, such as a mean, are of all that was counted; percentiles are of
the histograms added together, or, of Triton's summaries, which cannot be added, the worst server's.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import isnan, nan

from . import histograms
from .series import CounterName, GaugeName, Histogram, HistogramName, ModelSeries
from .signals import Distribution, ServerQueue, Signals
from .windows import Increase

FAILURES = (
    CounterName.REJECTED,
    CounterName.TIMED_OUT,
    CounterName.OUT_OF_MEMORY,
    CounterName.BACKEND_FAILED,
    CounterName.OTHER_FAILED,
)
"""What counts as failed: not what its client took back."""
_COMPUTE = (CounterName.INPUT_S, CounterName.INFER_S, CounterName.OUTPUT_S)
_LATENCIES = {
    "p50": GaugeName.LATENCY_P50,
    "p90": GaugeName.LATENCY_P90,
    "p95": GaugeName.LATENCY_P95,
    "p99": GaugeName.LATENCY_P99,
    "p999": GaugeName.LATENCY_P999,
}
_QUEUES = {
    "p50": GaugeName.QUEUE_P50,
    "p90": GaugeName.QUEUE_P90,
    "p95": GaugeName.QUEUE_P95,
    "p99": GaugeName.QUEUE_P99,
    "p999": GaugeName.QUEUE_P999,
}


@dataclass(frozen=True, slots=True)
class Part:
    """One version on one server, over its window of `span_s` seconds, which ended `age_s` seconds ago. `newest`: of
    that, what the last `newest_s` added.
    """

    server: str
    age_s: float
    span_s: float
    now: ModelSeries
    grown: Increase
    newest: Increase | None = None
    newest_s: float = 0.0


def signals_of(parts: Sequence[Part], now: datetime, unmeasured: Collection[str] = ()) -> Signals:
    """Return what the parts, of which there is one or more, tell together; `unmeasured`: servers that tell nothing."""
    instances, busy_s = _gauge(parts, GaugeName.INSTANCES), _rate(parts, CounterName.BUSY_S)
    max_batch = _highest(parts, GaugeName.MAX_BATCH)
    compute = _ratio(parts, _COMPUTE, CounterName.ANSWERED)
    return Signals(
        at=now - timedelta(seconds=min(part.age_s for part in parts)),
        window_s=max(part.span_s for part in parts),
        servers=len({part.server for part in parts}),
        unmeasured=len(unmeasured),
        arrivals=_arrivals(parts),
        recent=_recent(parts),
        recent_s=max(part.newest_s for part in parts),
        completions=_rate(parts, CounterName.ANSWERED),
        failures=_failures(parts, FAILURES),
        rejections=_rate(parts, CounterName.REJECTED),
        timeouts=_rate(parts, CounterName.TIMED_OUT),
        out_of_memory=_rate(parts, CounterName.OUT_OF_MEMORY),
        growth=_growth(parts),
        pending=_gauge(parts, GaugeName.PENDING),
        running=_gauge(parts, GaugeName.RUNNING),
        queues=tuple(_queues(parts)),
        latency=_distribution(parts, HistogramName.LATENCY, CounterName.REQUEST_S, _LATENCIES),
        queue=_distribution(parts, HistogramName.QUEUE, CounterName.QUEUE_S, _QUEUES),
        compute=compute,
        execution=_or(_ratio(parts, (CounterName.EXECUTING_S,), CounterName.EXECUTIONS), compute),
        batch=_ratio(parts, (CounterName.ROWS,), CounterName.EXECUTIONS),
        max_batch=None if max_batch is None else int(max_batch),
        instances=instances,
        busy=None if busy_s is None or not instances else min(busy_s / instances, 1.0),
        cache_hits=_cache_hits(parts),
        first_token=histograms.distribution(_histogram(parts, HistogramName.FIRST_TOKEN)),
        between_tokens=histograms.distribution(_histogram(parts, HistogramName.BETWEEN_TOKENS)),
        tokens=_rate(parts, CounterName.TOKENS),
        engine_waiting=_gauge(parts, GaugeName.ENGINE_WAITING),
        engine_running=_gauge(parts, GaugeName.ENGINE_RUNNING),
        kv_cache=_highest(parts, GaugeName.KV_CACHE),
    )


def _finite(value: float) -> float | None:
    return None if isnan(value) else value


def _or(value: float | None, other: float | None) -> float | None:
    return other if value is None else value


def _rate(parts: Sequence[Part], what: CounterName) -> float | None:
    return _finite(sum(part.grown.counters.get(what, nan) / part.span_s for part in parts))


def _failures(parts: Sequence[Part], reasons: Iterable[CounterName]) -> float | None:
    """All together. A server that knows a reason not, as Triton does running out of memory, has none such."""
    rates = [_rate([part for part in parts if reason in part.grown.counters], reason) for reason in reasons]
    if not all(any(reason in part.grown.counters for reason in reasons) for part in parts):
        return None
    return None if None in rates else sum(rate for rate in rates if rate is not None)


def _arrivals(parts: Sequence[Part]) -> float | None:
    """Return what ended, and what there is more of in queues and instances than when the window began."""
    ended = (_rate(parts, CounterName.ANSWERED), _failures(parts, (*FAILURES, CounterName.CANCELED)))
    if ended[0] is None:
        return None
    return max(0.0, ended[0] + (ended[1] or 0.0) + (_growth(parts) or 0.0))


def _growth(parts: Sequence[Part]) -> float | None:
    return _finite(sum(part.grown.backlog / part.span_s for part in parts))


def _recent(parts: Sequence[Part]) -> float | None:
    newest = [replace(name, grown=name.newest, span_s=name.newest_s) for name in parts if name.newest is not None]
    return _arrivals(newest) if len(newest) == len(parts) else None


def _sum(parts: Iterable[Part], what: CounterName) -> float:
    return sum(part.grown.counters.get(what, nan) for part in parts)


def _ratio(parts: Sequence[Part], over: Iterable[CounterName], under: CounterName) -> float | None:
    """None where there was nothing to divide by."""
    below = _sum(parts, under)
    return _finite(sum(_sum(parts, what) for what in over) / below) if below > 0 else None


def _cache_hits(parts: Sequence[Part]) -> float | None:
    hits, misses = _sum(parts, CounterName.CACHE_HITS), _sum(parts, CounterName.CACHE_MISSES)
    return _finite(hits / (hits + misses)) if hits + misses > 0 else None


def _gauge(parts: Sequence[Part], what: GaugeName) -> float | None:
    return _finite(sum(part.now.gauges.get(what, nan) for part in parts))


def _queues(parts: Sequence[Part]) -> Iterator[ServerQueue]:
    """Of each server all versions together."""
    for server in sorted({part.server for part in parts}):
        mine = [part for part in parts if part.server == server]
        pending, inside = _gauge(mine, GaugeName.PENDING), _gauge(mine, GaugeName.ENGINE_WAITING)
        if pending is not None or inside is not None:
            yield ServerQueue(server, (pending or 0.0) + (inside or 0.0))


def _highest(parts: Sequence[Part], what: GaugeName) -> float | None:
    return max((part.now.gauges[what] for part in parts if what in part.now.gauges), default=None)


def _histogram(parts: Sequence[Part], which: HistogramName) -> Histogram | None:
    """None unless each server has one."""
    if not all(which in part.now.histograms for part in parts):
        return None
    return histograms.together(part.grown.histograms[which] for part in parts if which in part.grown.histograms)


def _distribution(
    parts: Sequence[Part], which: HistogramName, total: CounterName, summary: Mapping[str, GaugeName]
) -> Distribution:
    measured = histograms.distribution(_histogram(parts, which))
    if measured.mean is not None:
        return measured
    mean = _ratio(parts, (total,), CounterName.ANSWERED)
    return Distribution() if mean is None else Distribution(mean, *(_highest(parts, summary[name]) for name in summary))

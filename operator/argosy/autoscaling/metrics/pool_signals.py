"""The signals of a pool: the sums over its servers' windows, and over the versions of a model.

A sum is unknown if one of its parts is. Ratios are over all requests. Percentiles are over all histograms together;
Triton's summaries cannot be added, so of these the slowest server's are used.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isnan, nan

from .histograms import SHARES, UNMEASURED, Distribution
from .names import LATENCY_SUMMARY, QUEUE_SUMMARY, Counter, Failure, Gauge, HistogramName
from .signals import MemorySignals, PoolSignals, ServerQueue, Signals
from .variants import variant_signals
from .windows import ModelSeries, ServerWindow, increase


@dataclass(frozen=True, slots=True)
class _Part:
    """One version of a model on one server: the values of its newest reading, `age_s` seconds ago, and the increases
    over the `window` and since the reading before (`newest`).
    """

    server: str
    version: int
    age_s: float
    series: ModelSeries
    window: ModelSeries
    newest: ModelSeries


def pool_signals(
    serves: Mapping[str, Mapping[str, str]], windows: Mapping[str, ServerWindow], clock: float, now: datetime
) -> PoolSignals:
    """Return the signals of a pool at `now`, which is `clock` on the clock of the windows.

    `serves`: by server, the members by the name of their model there. `windows`: by server. A member is left out if
    none of its servers was read twice.
    """
    fresh = {server: window for server, window in windows.items() if server in serves and window.is_fresh(clock)}
    parts: dict[str, list[_Part]] = {}
    for server, window in fresh.items():
        for model, part in _parts(server, window, clock):
            if model in serves[server]:
                parts.setdefault(serves[server][model], []).append(part)
    servers = collections.Counter(member for members in serves.values() for member in set(members.values()))
    return PoolSignals(
        {member: _signals(some, servers[member], now) for member, some in parts.items()},
        {(server, index): gpu for server, window in fresh.items() for index, gpu in enumerate(window.latest.gpus)},
    )


def _parts(server: str, window: ServerWindow, clock: float) -> Iterator[tuple[str, _Part]]:
    """Yield the name and the part of each version of a model on a server."""
    age, readings = max(0.0, clock - window.latest.at), window.readings
    if len(readings) > 1:
        for key, series in window.latest.models.items():
            yield key[0], _Part(server, key[1], age, series, increase(readings, key), increase(readings[-2:], key))


def _signals(parts: Sequence[_Part], servers: int, now: datetime) -> Signals:
    """Return the sum of the parts, of which there is at least one. `servers`: how many serve the member."""
    series, windows = [part.series for part in parts], [part.window for part in parts]
    newest, measured = [part.newest for part in parts], {part.server for part in parts}
    compute = _ratio(windows, (Counter.INPUT, Counter.INFER, Counter.OUTPUT), Counter.ANSWERED)
    execution = _ratio(windows, (Counter.EXECUTING,), Counter.EXECUTIONS)
    instances, busy = _sum(series, Gauge.INSTANCES), _rate(windows, Counter.BUSY)
    max_batch = _highest(one.value(Gauge.MAX_BATCH) for one in series)
    return Signals(
        at=now - timedelta(seconds=min(part.age_s for part in parts)),
        window_s=max(window.span_s for window in windows),
        servers=len(measured),
        unmeasured=servers - len(measured),
        arrivals=_arrivals(windows),
        recent=_arrivals(newest),
        recent_s=max(step.span_s for step in newest),
        completions=_rate(windows, Counter.ANSWERED),
        rejections=_rate(windows, Failure.REJECTED),
        timeouts=_rate(windows, Failure.TIMED_OUT),
        out_of_memory=_rate(windows, Failure.OUT_OF_MEMORY),
        failing=tuple(sorted({part.version for part in parts if part.window.value(Failure.OUT_OF_MEMORY) > 0})),
        growth=_growth(windows),
        pending=_sum(series, Gauge.PENDING),
        running=_sum(series, Gauge.RUNNING),
        queues=tuple(_queues(parts)),
        latency=_distribution(parts, HistogramName.LATENCY, Counter.REQUEST, LATENCY_SUMMARY),
        queue=_distribution(parts, HistogramName.QUEUE, Counter.QUEUE, QUEUE_SUMMARY),
        compute=compute,
        execution=compute if execution is None else execution,
        batch=_ratio(windows, (Counter.ROWS,), Counter.EXECUTIONS),
        max_batch=None if max_batch is None else int(max_batch),
        instances=instances,
        busy=None if busy is None or not instances else min(busy / instances, 1.0),
        cache_hits=_ratio(windows, (Counter.CACHE_HITS,), Counter.CACHE_HITS, Counter.CACHE_MISSES),
        first_token=_distribution(parts, HistogramName.FIRST_TOKEN),
        between_tokens=_distribution(parts, HistogramName.BETWEEN_TOKENS),
        engine_queue=_distribution(parts, HistogramName.ENGINE_QUEUE),
        tokens=_rate(windows, Counter.TOKENS),
        prompt_tokens=_rate(windows, Counter.PROMPT_TOKENS),
        cached_tokens=_rate(windows, Counter.CACHED_TOKENS),
        preemptions=_rate(windows, Counter.PREEMPTIONS),
        engine_waiting=_sum(series, Gauge.ENGINE_WAITING),
        engine_running=_sum(series, Gauge.ENGINE_RUNNING),
        kv_cache=_highest(one.value(Gauge.KV_CACHE) for one in series),
        variants=variant_signals((part.series, part.window) for part in parts),
        memory=_memory(parts),
        crashed=tuple(sorted({part.server for part in parts if part.window.value(Counter.INSTANCES_LOST, 0.0) > 0})),
    )


def _finite(value: float) -> float | None:
    return None if isnan(value) else value


def _highest(values: Iterable[float]) -> float | None:
    return max((value for value in values if not isnan(value)), default=None)


def _sum(series: Iterable[ModelSeries], gauge: Gauge) -> float | None:
    return _finite(sum(one.value(gauge) for one in series))


def _rate(increases: Iterable[ModelSeries], counter: Counter | Failure, missing: float = nan) -> float | None:
    return _finite(sum(one.value(counter, missing) / one.span_s for one in increases))


def _ratio(increases: Iterable[ModelSeries], over: Iterable[Counter], *under: Counter) -> float | None:
    """Return the sum of some counters by that of others; None if the latter is 0."""
    above, below = (sum(one.value(counter) for one in increases for counter in counters) for counters in (over, under))
    return _finite(above / below) if below > 0 else None


def _arrivals(increases: Sequence[ModelSeries]) -> float | None:
    """Return the rate of requests that ended, and by which more are in queues and instances."""
    answered, growth = _rate(increases, Counter.ANSWERED), _growth(increases)
    failed = sum(_rate(increases, reason, missing=0.0) or 0.0 for reason in Failure)
    return None if answered is None else max(0.0, answered + failed + (growth or 0.0))


def _growth(increases: Iterable[ModelSeries]) -> float | None:
    return _finite(sum((one.value(Gauge.PENDING) + one.value(Gauge.RUNNING, 0.0)) / one.span_s for one in increases))


def _queues(parts: Sequence[_Part]) -> Iterator[ServerQueue]:
    """Yield the requests that wait on each server, for all versions together."""
    for server in sorted({part.server for part in parts}):
        series = [part.series for part in parts if part.server == server]
        pending, inside = _sum(series, Gauge.PENDING), _sum(series, Gauge.ENGINE_WAITING)
        if pending is not None or inside is not None:
            yield ServerQueue(server, (pending or 0.0) + (inside or 0.0))


def _memory(parts: Iterable[_Part]) -> tuple[MemorySignals, ...]:
    """Return the memory of each version on the server where it is the most, of those that were measured in the window.

    Only what was measured of settled processes is a fact: an instance that loads or has ended uses less than one that
    serves.
    """
    largest: dict[int, MemorySignals] = {}
    for part in filter(_is_settled, parts):
        host, gpu = (_finite(part.series.value(gauge)) for gauge in (Gauge.HOST_MEMORY, Gauge.GPU_MEMORY))
        memory = MemorySignals(part.version, part.server, round(part.series.value(Gauge.INSTANCES)), host, gpu)
        largest[part.version] = max(largest.get(part.version, memory), memory, key=_memory_size)
    return tuple(largest[version] for version in sorted(largest))


def _is_settled(part: _Part) -> bool:
    """Return whether memory was measured in the window, in all of which the same instances were loaded."""
    window = part.window
    same = window.value(Gauge.INSTANCES) == 0 and window.value(Counter.INSTANCES_LOST, 0.0) == 0
    return same and part.series.value(Gauge.INSTANCES, 0.0) >= 1 and window.value(Gauge.MEMORY_TIME, 0.0) > 0


def _memory_size(memory: MemorySignals) -> tuple[float, float, str]:
    return memory.gpu or 0.0, memory.host or 0.0, memory.server


def _distribution(
    parts: Sequence[_Part], name: HistogramName, total: Counter | None = None, summary: str = ""
) -> Distribution:
    """Return the distribution of all histograms together, or else the counters' mean with the highest of summaries."""
    windows = [part.window for part in parts]
    histograms = [histogram for window in windows if (histogram := window.histogram(name)) is not None]
    if len(histograms) == len(windows) and (together := sum(histograms[1:], histograms[0])).counts[-1]:
        return together.distribution()
    mean = None if total is None else _ratio(windows, (total,), Counter.ANSWERED)
    if mean is None:
        return UNMEASURED
    quantiles = (f"{summary}{{{share}}}" for share in SHARES.values())
    return Distribution(mean, *(_highest(part.series.values.get(one, nan) for part in parts) for one in quantiles))

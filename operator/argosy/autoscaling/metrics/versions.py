"""What the servers of a version counted between two readings, for the analysis of rollouts.

Only what was counted for certain is added up. What a restart of a model or a server, a jump of a clock or a missing
metric makes uncertain is left out, and so are the first seconds after a load, except for failures of the version that
end a rollout at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise, starmap
from math import inf, isfinite, nan
from operator import sub
from typing import Final

from .histograms import Histogram
from .names import Counter, Failure, Gauge, HistogramName, PerSize, Routed
from .shadows import shadow_signals
from .version_counts import Executions, VersionSignals
from .windows import Exposed, ModelKey, ModelSeries, ServerWindow

_RESTARTED: Final = tuple(source for counter in (*Counter, *Failure) for source in counter.value)


@dataclass(frozen=True, slots=True)
class VersionMarks:
    """Up to when each server's readings were counted, and since when each version is known to be loaded there, in
    seconds of the windows' clock.
    """

    read_until: Mapping[str, float] = field(default_factory=dict)
    loaded: Mapping[tuple[str, ModelKey], float] = field(default_factory=dict)


def version_signals(
    serves: Mapping[str, Mapping[str, str]],
    windows: Mapping[str, ServerWindow],
    analyzed: Mapping[str, float],
    marks: VersionMarks,
) -> tuple[dict[str, dict[int, VersionSignals]], VersionMarks]:
    """Return what the versions of the `analyzed` members counted since the marks, and the marks for the next time.

    `serves`: by server, the members by the name of their model there. `analyzed`: by member, the seconds after a load
    that are left out. A server's first reading only sets its mark.
    """
    sums: dict[str, dict[int, VersionSignals]] = {}
    read_until: dict[str, float] = {}
    loaded: dict[tuple[str, ModelKey], float] = {}
    for server, window in windows.items():
        members = {model: name for model, name in serves.get(server, {}).items() if name in analyzed}
        read_until[server] = window.latest.at
        for key in (key for key in window.latest.models if key[0] in members):
            member = members[key[0]]
            since = loaded[server, key] = _since(window, key, marks.loaded.get((server, key), inf))
            begins, warm = marks.read_until.get(server, inf), since + analyzed[member]
            of_member = sums.setdefault(member, {})
            total = of_member.get(key[1], VersionSignals())
            for signals in _increases(window.readings, key, begins, warm):
                total += signals
            of_member[key[1]] = total
    return sums, VersionMarks(read_until, loaded)


def _since(window: ServerWindow, key: ModelKey, mark: float) -> float:
    """Return when the version was first read after its last load. If it was there from the first reading on, it may be
    older, and `mark` is since when it is known to be there.
    """
    since = window.latest.at
    for before, after in pairwise(reversed(window.readings)):
        then, now = after.models.get(key), before.models.get(key)
        if then is None or now is None or (then is not now and _restarted(then, now)):
            return since
        since = after.at
    return min(since, mark)  # the former is earlier where the clock was set back


def _increases(readings: Iterable[Exposed], key: ModelKey, begins: float, warm: float) -> Iterator[VersionSignals]:
    """Yield what a version counted between each two readings after the mark."""
    for before, after in pairwise(readings):
        then, now = before.models.get(key), after.models.get(key)
        if after.at <= begins or then is None or now is None or _restarted(then, now):
            continue
        seconds = after.at - before.at
        step = VersionSignals(seconds) if then is now else _step(then, now, seconds)
        yield step.as_reading() if before.at >= warm else _immediate(step)


def _restarted(then: ModelSeries, now: ModelSeries) -> bool:
    return any(now.values.get(source, inf) < then.values.get(source, 0.0) for source in _RESTARTED)


def _immediate(step: VersionSignals) -> VersionSignals:
    """Return what counts while a version warms up, too: what ends a rollout at once, and its share of the requests."""
    out_of_memory = step.failures.get(Failure.OUT_OF_MEMORY, 0.0)
    return VersionSignals(
        failures={Failure.OUT_OF_MEMORY: out_of_memory} if out_of_memory else {},
        instances_lost=step.instances_lost,
        failed_loads=step.failed_loads,
        routed=step.routed,
        by_weight=step.by_weight,
    )


def _step(then: ModelSeries, now: ModelSeries, seconds: float) -> VersionSignals:
    """Return the increases between two readings of a version that did not restart in between."""

    def grown(counter: Counter | Routed | Failure) -> float:
        increase = now.value(counter) - then.value(counter)
        return increase if isfinite(increase) else 0.0

    failures = {reason: count for reason in Failure if (count := grown(reason))}
    step = VersionSignals(
        seconds,
        grown(Counter.ANSWERED),
        grown(Counter.MODEL_ERRORS),
        failures,
        grown(Counter.INSTANCES_LOST),
        grown(Counter.FAILED_LOADS),
        executions=dict(_executions(then, now)),
    )
    return replace(
        step,
        latency=now.durations_since(then, HistogramName.LATENCY),
        queue=now.durations_since(then, HistogramName.QUEUE),
        queue_delay_s=now.value(Gauge.QUEUE_DELAY, 0.0),
        routed=sum(grown(by) for by in Routed),
        by_weight=grown(Routed.BY_WEIGHT),
        shadow=shadow_signals(then, now),
    )


def _executions(then: ModelSeries, now: ModelSeries) -> Iterator[tuple[float, Executions]]:
    """Yield the executions of each size of batches that has any, by the bound of the size."""
    before, after = then.histogram(HistogramName.BATCH_ROWS), now.histogram(HistogramName.BATCH_ROWS)
    if before is None or after is None or before.bounds != after.bounds:
        return
    for bound, former, latter in zip(after.bounds, _alone(before), _alone(after), strict=True):
        # A size has no counters before its first execution.
        missing = nan if former else 0.0
        rows, seconds = (_size(now, metric, bound, nan) - _size(then, metric, bound, missing) for metric in PerSize)
        if latter > former and rows > 0 and seconds > 0:
            yield bound, Executions.read(latter - former, rows, seconds)


def _alone(histogram: Histogram) -> Iterator[float]:
    """Yield the count of each bucket without those below it."""
    return starmap(sub, zip(histogram.counts, (0.0, *histogram.counts), strict=False))


def _size(series: ModelSeries, metric: PerSize, bound: float, missing: float) -> float:
    text = "+Inf" if bound == inf else f"{bound:g}"
    return series.values.get(f"{metric.value[0]}{{{text}}}", missing)

"""The signals of a shadow: what servers counted between two readings of the requests mirrored to a version."""

from collections.abc import Iterator, Mapping
from math import isfinite

from .durations import Durations
from .names import SEPARATOR, HistogramName, PerShadow
from .shadow_counts import ShadowExample, ShadowOutput, ShadowSignals, worst
from .windows import ModelSeries


def shadow_signals(then: ModelSeries, now: ModelSeries) -> ShadowSignals | None:
    """Return what was counted between two readings of a version; None if it is no candidate.

    Counters of a shadow begin with its first copy, so that a missing earlier value is zero.
    """
    outcomes = dict(_grown(then, now, PerShadow.OUTCOMES))
    if not outcomes:
        return None
    return ShadowSignals(
        outcomes,
        dict(_grown(then, now, PerShadow.FAILURES)),
        dict(_grown(then, now, PerShadow.OBSTACLES)),
        _outputs(then, now),
        _durations(then, now, HistogramName.SHADOW_STABLE),
        _durations(then, now, HistogramName.SHADOW_CANDIDATE),
        sum(grown for _, grown in _grown(then, now, PerShadow.CALLS)),
    )


def _durations(then: ModelSeries, now: ModelSeries, name: HistogramName) -> Durations | None:
    first = now.histogram(name) if then.histogram(name) is None else None
    return now.durations_since(then, name) if first is None else Durations.read(first)


def _outputs(then: ModelSeries, now: ModelSeries) -> dict[str, ShadowOutput]:
    different = dict(_grown(then, now, PerShadow.DIFFERENT))
    rows, agreeing = dict(_grown(then, now, PerShadow.ROWS)), dict(_grown(then, now, PerShadow.AGREEING))
    largest, examples = dict(_values(now, PerShadow.LARGEST)), dict(_values(now, PerShadow.EXAMPLE))
    return {
        output: ShadowOutput(
            count,
            rows.get(output, 0.0),
            agreeing.get(output, 0.0),
            largest.get(output),
            worst(tuple(_examples(output, examples))),
        )
        for output, count in different.items()
    }


def _examples(output: str, examples: Mapping[str, float]) -> Iterator[ShadowExample]:
    for labels, size in examples.items():
        parts = labels.split(SEPARATOR)
        if len(parts) == len(PerShadow.EXAMPLE.labels) and parts[0] == output:
            yield ShadowExample(parts[1], parts[2], size)


def _values(series: ModelSeries, metric: PerShadow) -> Iterator[tuple[str, float]]:
    """Yield the values of a metric by its labels, those that are no numbers left out."""
    prefix = f"{metric.source}{{"
    for source, value in series.values.items():
        if source.startswith(prefix) and isfinite(value):
            yield source[len(prefix) : -1], value


def _grown(then: ModelSeries, now: ModelSeries, metric: PerShadow) -> Iterator[tuple[str, float]]:
    former = dict(_values(then, metric))
    for labels, value in _values(now, metric):
        before = former.get(labels, 0.0)
        yield labels, value - before if value >= before else value

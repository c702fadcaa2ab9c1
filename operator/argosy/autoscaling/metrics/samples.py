"""Samples, as a server's text or Prometheus gives them, to what a server exposed.

What cannot be so is left out: NaN, infinite or negative values, shares beyond 1, histograms that fall. Each sample is
added up where it belongs as it comes: all of a big server's at once would take a hundred megabytes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isfinite, isnan, nan

from .histograms import is_sound
from .metricnames import COUNTERS, GAUGES, GPU_TOTAL, GPU_USED, GPU_UTILIZATION, HISTOGRAMS
from .series import CounterName, Exposed, GaugeName, GpuSeries, Histogram, HistogramName, ModelKey, ModelSeries

_SHARES = frozenset({GaugeName.KV_CACHE})
_HIGHEST = frozenset(gauge for gauge in GaugeName if gauge.name[-2:].isdecimal()) | _SHARES | {GaugeName.MAX_BATCH}
"""Of these the highest counts where there are several, such as of engines; the rest are added."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Buckets:
    """Values of a histogram's buckets, by their bounds as they are written (labels `le`); `labels` are the others."""

    name: str
    labels: Mapping[str, str]
    bounds: tuple[str, ...]
    counts: tuple[float, ...]


@dataclass(slots=True)
class _Sums:
    """What one version of a model has so far, by what it is and by which of its sources told it."""

    values: dict[tuple[CounterName | GaugeName, int], float] = field(default_factory=dict)
    buckets: dict[tuple[HistogramName, int], dict[float, float]] = field(default_factory=dict)
    totals: dict[tuple[HistogramName, int], float] = field(default_factory=dict)


def _by_name() -> dict[tuple[str, str], list[tuple[CounterName | GaugeName, int, float]]]:
    """For what a sample counts, and times what, by its name and by what it has for the label that its name needs."""
    by_source: dict[tuple[str, str], list[tuple[CounterName | GaugeName, int, float]]] = {}
    for table in (COUNTERS, GAUGES):
        for what, sources in table.items():
            for rank, source in enumerate(sources):
                by_source.setdefault((source.name, source.value), []).append((what, rank, source.scale))
    return by_source


_VALUES = _by_name()
_LABEL = {
    source.name: source.label
    for table in (COUNTERS, GAUGES)
    for sources in table.values()
    for source in sources
    if source.label
}
_BUCKETS, _TOTALS = (
    {
        f"{source.name}{end}": (which, rank, source.scale)
        for which, sources in HISTOGRAMS.items()
        for rank, source in enumerate(sources)
    }
    for end in ("_bucket", "_sum")
)


def exposed(samples: Iterable[Sample | Buckets], at: float) -> Exposed:
    """Return all of one server's samples. Those of other metrics, or without a model's labels, are passed over."""
    models: dict[ModelKey, _Sums] = {}
    gpus: dict[str, dict[str, float]] = {}
    for sample in samples:
        if isinstance(sample, Buckets):
            if (key := _key(sample.labels)) is not None:
                _add_buckets(models.setdefault(key, _Sums()), sample)
        elif "gpu_uuid" in sample.labels and "model" not in sample.labels:
            gpus.setdefault(sample.labels["gpu_uuid"], {})[sample.name] = sample.value
        elif (key := _key(sample.labels)) is not None:
            _add(models.setdefault(key, _Sums()), sample)
    bounds: dict[tuple[float, ...], tuple[float, ...]] = {}
    return Exposed(
        at,
        {key: _series(sums, bounds) for key, sums in models.items()},
        {uuid: _gpu(values) for uuid, values in gpus.items()},
    )


def _key(labels: Mapping[str, str]) -> ModelKey | None:
    model, version = labels.get("model") or labels.get("model_name", ""), labels.get("version", "1")
    return (model, int(version)) if model and version.isdecimal() else None


def _add_buckets(sums: _Sums, some: Buckets) -> None:
    which, rank, scale = _BUCKETS[some.name]
    counts = sums.buckets.setdefault((which, rank), {})
    for bound, count in zip(_bounds(some.bounds, scale), some.counts, strict=True):
        counts[bound] = counts.get(bound, 0.0) + count


@lru_cache(maxsize=64)
def _bounds(texts: tuple[str, ...], scale: float) -> tuple[float, ...]:
    """Of many histograms the same."""
    return tuple(_bound(text) * scale for text in texts)


def _add(sums: _Sums, sample: Sample) -> None:
    name, labels, value = sample.name, sample.labels, sample.value
    if name in _BUCKETS:
        which, rank, scale = _BUCKETS[name]
        counts = sums.buckets.setdefault((which, rank), {})
        bound = _bound(labels.get("le", "")) * scale
        counts[bound] = counts.get(bound, 0.0) + value
    elif name in _TOTALS:
        which, rank, scale = _TOTALS[name]
        sums.totals[which, rank] = sums.totals.get((which, rank), 0.0) + value * scale
    label = _LABEL.get(name)
    for what, rank, scale in _VALUES.get((name, labels.get(label, "") if label else ""), ()):
        before = sums.values.get((what, rank), 0.0)
        sums.values[what, rank] = _joined(what, before, _possible(what, value) * scale)


def _possible(what: CounterName | GaugeName, value: float) -> float:
    """NaN where it cannot be so, which no sum turns into a number."""
    return value if 0 <= value < inf and (what not in _SHARES or value <= 1) else nan


def _joined(what: CounterName | GaugeName, before: float, value: float) -> float:
    if what not in _HIGHEST:
        return before + value
    return nan if isnan(before) or isnan(value) else max(before, value)


def _series(sums: _Sums, bounds: dict[tuple[float, ...], tuple[float, ...]]) -> ModelSeries:
    """Of each the first source that tells it. Histograms that have the same `bounds` share them."""
    counters: dict[CounterName, float] = {}
    gauges: dict[GaugeName, float] = {}
    distributions: dict[HistogramName, Histogram] = {}
    for (what, _), value in sorted(sums.values.items(), key=lambda item: item[0][1]):
        if isfinite(value):
            counters.setdefault(what, value) if isinstance(what, CounterName) else gauges.setdefault(what, value)
    for (which, rank), counts in sorted(sums.buckets.items(), key=lambda item: item[0][1]):
        of = tuple(sorted(counts))
        total = sums.totals.get((which, rank), 0.0)
        histogram = Histogram(bounds.setdefault(of, of), tuple(counts[bound] for bound in of), total)
        if is_sound(histogram):
            distributions.setdefault(which, histogram)
    return ModelSeries(counters, gauges, distributions)


def _bound(text: str) -> float:
    """Return a bucket's bound; one that is no number is below all others, with which no histogram is sound."""
    try:
        return inf if text == "+Inf" else float(text)
    except ValueError:
        return -inf


def _gpu(values: Mapping[str, float]) -> GpuSeries:
    utilization, used, total = (_sound(values.get(name, inf)) for name in (GPU_UTILIZATION, GPU_USED, GPU_TOTAL))
    if utilization is not None and utilization > 1:
        utilization = None
    if total is not None and used is not None and used > total:
        used = None
    return GpuSeries(utilization, None if used is None else int(used), None if total is None else int(total))


def _sound(value: float) -> float | None:
    return value if isfinite(value) and value >= 0 else None

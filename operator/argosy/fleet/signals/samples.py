"""Samples, as a server's text or Prometheus gives them, to what a server exposed.

What cannot be so is left out: NaN, infinite or negative values, shares beyond 1, histograms that fall.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import TypeVar

from .histograms import is_sound
from .metricnames import COUNTERS, GAUGES, GPU_TOTAL, GPU_USED, GPU_UTILIZATION, HISTOGRAMS, Source
from .series import Exposed, Gauged, GpuSeries, Histogram, ModelKey, ModelSeries

What = TypeVar("What")
Value = TypeVar("Value")
_SHARES = frozenset({Gauged.KV_CACHE})
_HIGHEST = frozenset(each for each in Gauged if each.name[-2:].isdecimal()) | _SHARES | {Gauged.MAX_BATCH}
"""Of these the highest counts where there are several, such as of engines; the rest are added."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric."""

    name: str
    labels: Mapping[str, str]
    value: float


Named = Mapping[str, Sequence[Sample]]


def exposed(samples: Iterable[Sample], at: float) -> Exposed:
    """All of one server's samples. Those of other metrics, or without a model's labels, are passed over."""
    models: dict[ModelKey, dict[str, list[Sample]]] = {}
    gpus: dict[str, dict[str, float]] = {}
    for sample in samples:
        if "gpu_uuid" in sample.labels and "model" not in sample.labels:
            gpus.setdefault(sample.labels["gpu_uuid"], {})[sample.name] = sample.value
        elif (key := _key(sample.labels)) is not None:
            models.setdefault(key, {}).setdefault(sample.name, []).append(sample)
    return Exposed(
        at,
        {key: _series(named) for key, named in models.items()},
        {uuid: _gpu(values) for uuid, values in gpus.items()},
    )


def _key(labels: Mapping[str, str]) -> ModelKey | None:
    model, version = labels.get("model") or labels.get("model_name", ""), labels.get("version", "1")
    return (model, int(version)) if model and version.isdecimal() else None


def _series(named: Named) -> ModelSeries:
    return ModelSeries(
        _told(COUNTERS, lambda _, source: _added(source, named)),
        _told(GAUGES, lambda what, source: _gauge(what, source, named)),
        _told(HISTOGRAMS, lambda _, source: _histogram(source, named)),
    )


def _told(table: Mapping[What, tuple[Source, ...]], read: Callable[[What, Source], Value | None]) -> dict[What, Value]:
    """What the first source that is there tells, of each."""
    found: dict[What, Value] = {}
    for what, sources in table.items():
        for source in sources:
            value = read(what, source)
            if value is not None:
                found[what] = value
                break
    return found


def _values(source: Source, named: Named) -> list[float]:
    samples = named.get(source.name, ())
    return [
        sample.value * source.scale
        for sample in samples
        if all(sample.labels.get(label) == value for label, value in source.labels)
    ]


def _added(source: Source, named: Named) -> float | None:
    values = _values(source, named)
    return _sound(sum(values)) if values and min(values) >= 0 else None


def _gauge(what: Gauged, source: Source, named: Named) -> float | None:
    if what not in _HIGHEST:
        return _added(source, named)
    value = max(_values(source, named), default=None)
    return None if value is None or (what in _SHARES and value > 1) else _sound(value)


def _sound(value: float) -> float | None:
    return value if isfinite(value) and value >= 0 else None


def _histogram(source: Source, named: Named) -> Histogram | None:
    """Its buckets; those of several, such as of engines, are added."""
    counts: dict[float, float] = {}
    for sample in named.get(f"{source.name}_bucket", ()):
        bound = _bound(sample.labels.get("le", "")) * source.scale
        counts[bound] = counts.get(bound, 0.0) + sample.value
    total = sum(sample.value for sample in named.get(f"{source.name}_sum", ()))
    bounds = tuple(sorted(counts))
    histogram = Histogram(bounds, tuple(counts[bound] for bound in bounds), total * source.scale)
    return histogram if is_sound(histogram) else None


def _bound(text: str) -> float:
    """A bucket's bound; one that is no number is below all others, with which no histogram is sound."""
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

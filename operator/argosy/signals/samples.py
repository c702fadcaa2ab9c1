"""Samples of a server's text, or of a Prometheus, as what the server exposed.

Impossible values are left out: NaN, infinite or negative ones, ratios beyond 1, histograms that fall.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf, nan
from operator import le, lt

from argosy.autoscaling.metrics.histograms import Histogram
from argosy.autoscaling.metrics.names import (
    LATENCY_SUMMARY,
    QUEUE_SUMMARY,
    SEPARATOR,
    Counter,
    Failure,
    Gauge,
    HistogramName,
    PerShadow,
    PerSize,
    PerVariant,
    Routed,
)
from argosy.autoscaling.metrics.signals import GpuSignals
from argosy.autoscaling.metrics.windows import Exposed, ModelKey, ModelSeries

LABELS: Mapping[str, tuple[str, ...]] = {
    "argosy_request_failures_total": ("reason",),
    "nv_inference_request_failure": ("reason",),
    "argosy_version_requests_total": ("by",),
    "argosy_model_memory_bytes": ("type",),
    "nv_trt_llm_request_metrics": ("request_type",),
    "nv_trt_llm_kv_cache_block_metrics": ("kv_cache_block_type",),
    LATENCY_SUMMARY: ("quantile",),
    QUEUE_SUMMARY: ("quantile",),
    **{source: ("variant",) for metric in PerVariant for source in metric.value},
    **{source: ("rows",) for metric in PerSize for source in metric.value},
    **{metric.source: metric.labels for metric in PerShadow},
}
"""The labels whose values are part of a source."""
_GPU = "nv_gpu_utilization", "nv_gpu_memory_used_bytes", "nv_gpu_memory_total_bytes"
_RATIOS = frozenset((_GPU[0], *Gauge.KV_CACHE.value))
_HIGHEST = (*_RATIOS, *Gauge.MAX_BATCH.value, *Gauge.GPU_MEMORY.value, LATENCY_SUMMARY, QUEUE_SUMMARY)
"""How sources begin of whose values the highest counts where there are several, as of engines or of a model's GPUs;
others are added.
"""
_MOST = 1e30
"""More than anything counts: what is computed of such values stays finite."""
_MOST_DIGITS = 18
"""Digits of a version, which is an integer of 64 bits."""
_SECONDS = {"_us": 1e-6, "_ms": 1e-3}
"""Units that names end with."""
_METRICS = (*Counter, *Routed, *Failure, *Gauge, *PerVariant, *PerSize)
BUCKETS = frozenset(f"{source}_bucket" for histogram in HistogramName for source in histogram.value)
SAMPLE_NAMES = BUCKETS.union(
    (bucket.replace("_bucket", "_sum") for bucket in BUCKETS),
    (source.partition("{")[0] for metric in _METRICS for source in metric.value),
    (metric.source for metric in PerShadow),
    (LATENCY_SUMMARY, QUEUE_SUMMARY, *_GPU),
)
"""The names of all samples that are read."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of a histogram: `bounds` are their labels `le` as they are written, `labels` the other ones."""

    name: str
    labels: Mapping[str, str]
    bounds: tuple[str, ...]
    counts: tuple[float, ...]


class _Values:
    """The values of one model or GPU, by source, and the buckets of its histograms, by name and bound.

    They are grouped as they are read: all samples of a large server at once would take a hundred megabytes.
    """

    def __init__(self) -> None:
        self._values: defaultdict[str, list[float]] = defaultdict(list)
        self._buckets: defaultdict[str, defaultdict[float, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, sample: Sample | Buckets) -> None:
        """Add a sample, or the buckets of a histogram."""
        if isinstance(sample, Buckets):
            self._add_buckets(sample.name, sample.bounds, sample.counts)
        elif sample.name in BUCKETS:
            self._add_buckets(sample.name, (sample.labels.get("le", ""),), (sample.value,))
        else:
            labels = LABELS.get(sample.name)
            source = sample.name if labels is None else f"{sample.name}{{{_label_text(labels, sample.labels)}}}"
            self._values[source].append(sample.value)

    def _add_buckets(self, name: str, bounds: tuple[str, ...], counts: tuple[float, ...]) -> None:
        buckets = self._buckets[name.removesuffix("_bucket")]
        for bound, count in zip(_parsed(bounds, _unit(name)), counts, strict=True):
            buckets[bound] += count

    def series(self) -> ModelSeries:
        """Return all that is possible."""
        values = {source: _joined(source, values) for source, values in self._values.items()}
        sums = {name: values.pop(f"{name}_sum", nan) for name in self._buckets}
        histograms = {name: _histogram(buckets, sums[name]) for name, buckets in self._buckets.items()}
        return ModelSeries(
            {source: value for source, value in values.items() if value < inf},
            {name: histogram for name, histogram in histograms.items() if _is_possible(histogram)},
        )


def exposed(samples: Iterable[Sample | Buckets], at: float) -> Exposed:
    """Return what one server exposed. Samples without the labels of a model or a GPU are left out."""
    owners: defaultdict[ModelKey | str, _Values] = defaultdict(_Values)
    for sample in samples:
        if owner := _owner(sample.labels):
            owners[owner].add(sample)
    models = {owner: values.series() for owner, values in owners.items() if isinstance(owner, tuple)}
    gpus = {owner: values.series().values for owner, values in owners.items() if isinstance(owner, str)}
    return Exposed(at, models, tuple(_gpu(gpus[uuid]) for uuid in sorted(gpus)))


def _owner(labels: Mapping[str, str]) -> ModelKey | str | None:
    """Return the model and its version, or else the GPU's UUID."""
    model, version = labels.get("model") or labels.get("model_name", ""), labels.get("version", "1")
    if model:
        is_version = version.isdecimal() and len(version) <= _MOST_DIGITS
        return (model, int(version)) if is_version else None
    return labels.get("gpu_uuid")


def _joined(source: str, values: list[float]) -> float:
    """Return the sum of the values or the highest, in seconds where it is a duration; NaN if one is impossible."""
    most = 1.0 if source in _RATIOS else _MOST
    if not all(0 <= value <= most for value in values):
        return nan
    return _unit(source) * (max(values) if source.startswith(_HIGHEST) else sum(values))


def _label_text(names: tuple[str, ...], labels: Mapping[str, str]) -> str:
    return SEPARATOR.join([labels.get(name, "") for name in names])


@lru_cache(maxsize=256)
def _unit(source: str) -> float:
    """Return the seconds of the unit that a name ends with, 1 of any other name."""
    name = source.partition("{")[0].removesuffix("_sum").removesuffix("_bucket")
    return _SECONDS.get(name[-3:], 1.0)


def _gpu(values: Mapping[str, float]) -> GpuSignals:
    utilization, used, total = (values.get(name) for name in _GPU)
    possible = used is None or total is None or used <= total
    return GpuSignals(utilization, used if possible else None, total)


def _histogram(buckets: Mapping[float, float], total_s: float) -> Histogram:
    bounds = _shared(tuple(sorted(buckets)))
    return Histogram(bounds, tuple(buckets[bound] for bound in bounds), total_s)


def _is_possible(histogram: Histogram) -> bool:
    """Return whether bounds and counts rise, the last bound is infinite, and no number is negative, NaN or huge."""
    bounds, counts = histogram.bounds, histogram.counts
    rising = all(map(lt, bounds, bounds[1:])) and all(map(le, counts, counts[1:]))
    positive = bounds[0] >= 0 and counts[0] >= 0
    return rising and positive and bounds[-1] == inf and counts[-1] <= _MOST and histogram.total_s < inf


@lru_cache(maxsize=64)
def _shared(bounds: tuple[float, ...]) -> tuple[float, ...]:
    """Return the same object for the same bounds, which many histograms have."""
    return bounds


@lru_cache(maxsize=64)
def _parsed(bounds: tuple[str, ...], unit: float) -> tuple[float, ...]:
    return tuple(_bound(text) * unit for text in bounds)


def _bound(text: str) -> float:
    """Return a bound; of a text that is none -inf, with which no histogram is sound."""
    try:
        return inf if text == "+Inf" else float(text)
    except ValueError:
        return -inf

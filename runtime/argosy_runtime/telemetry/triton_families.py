"""Triton's metrics of models (`nv_inference_*`), made from the statistics when they are scraped: its names, its units
(microseconds, milliseconds), its reasons of failure.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from argosy_runtime.backends.devices.pinned_pool import PinnedPool
from argosy_runtime.errors import FailureReason
from argosy_runtime.scheduling.response_cache.cache import ResponseCache

from .exposition import Family, bound_texts
from .latencies.settings import DEFAULTS, MetricsSettings, Quantile
from .series import ModelSeries

FIRST_RESPONSE: Final = "nv_inference_first_response_histogram_ms"
"""The one family whose buckets a model may set."""
_FIRST_RESPONSE_MS: Final = (100, 500, 2000, 5000)
_NS_IN_MS: Final = 1_000_000
_NS_IN_US: Final = 1_000

# Triton has four reasons: a timeout in the queue is a rejection there, a model short of memory a failed one.
_REASONS = {
    FailureReason.TIMEOUT: FailureReason.REJECTED,
    FailureReason.OUT_OF_MEMORY: FailureReason.BACKEND,
    FailureReason.INVALID: FailureReason.OTHER,
}

_NO_CACHE: Final = "(does not include cached requests)"
_WITH_CACHE: Final = "(includes cached requests)"
_STAGES: Final = (
    ("request", f"inference request duration in microseconds {_WITH_CACHE}", "success"),
    ("queue", f"inference queuing duration in microseconds {_WITH_CACHE}", "queue"),
    ("compute_input", f"compute input duration in microseconds {_NO_CACHE}", "compute_input"),
    ("compute_infer", f"compute inference duration in microseconds {_NO_CACHE}", "compute_infer"),
    ("compute_output", f"inference compute output duration in microseconds {_NO_CACHE}", "compute_output"),
)
"""The stages of a request: in a family's name, in its description, in the statistics."""


def triton_families(models: list[ModelSeries], settings: MetricsSettings = DEFAULTS) -> list[Family]:
    """Return Triton's families of all models' statistics. Those that failed to load have counters of failures alone."""
    failures = _failure([model for model in models if model.has_failures])
    models = [model for model in models if model.service is not None]
    families = [_success(models), failures, *_counts(models)]
    if settings.histograms is not False:
        families.append(_first_response(models, of_all=settings.histograms is True))
    if settings.counters:
        families += [*_durations(models), *_cache_counters(models)]
    if settings.summaries:
        families += _summaries(models, settings.quantiles)
    return families


def pinned_families(pool: PinnedPool) -> list[Family]:
    """Return the families of the page-locked memory of the server's own process."""
    total = Family("nv_pinned_memory_pool_total_bytes", "Pinned memory pool total memory size, in bytes", "gauge")
    used = Family("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes", "gauge")
    total.add({}, pool.total)
    used.add({}, pool.used)
    return [total, used]


def cache_families(cache: ResponseCache) -> list[Family]:
    """Return the families of the response cache, of all models together: gauges, as Triton's local cache has them."""
    values = (
        ("util", "Cache utilization [0.0 - 1.0]", cache.used / cache.capacity),
        ("num_entries", "Number of responses stored in response cache", len(cache)),
        ("num_hits", "Number of cache hits in response cache", cache.hits),
        ("num_misses", "Number of cache misses in response cache", cache.misses),
        ("num_lookups", "Number of cache lookups in response cache", cache.hits + cache.misses),
        ("num_evictions", "Number of cache evictions in response cache", cache.evictions),
        (
            "lookup_duration",
            "Total cache lookup duration (hit and miss), in microseconds",
            cache.lookup_ns // _NS_IN_US,
        ),
        ("insertion_duration", "Total cache insertion duration, in microseconds", cache.insertion_ns // _NS_IN_US),
    )
    families = []
    for name, text, value in values:
        family = Family(f"nv_cache_{name}", text, "gauge")
        family.add({}, value)
        families.append(family)
    return families


def _durations(models: list[ModelSeries]) -> Iterator[Family]:
    for name, text, attribute in _STAGES:
        family = Family(f"nv_inference_{name}_duration_us", f"Cumulative {text}", "counter")
        for model in models:
            family.add(model.labels, getattr(model.statistics, attribute).ns // _NS_IN_US)
        yield family


def _cache_counters(models: list[ModelSeries]) -> list[Family]:
    """Return the families of the response cache, with the models alone whose responses it keeps."""
    hits = Family("nv_cache_num_hits_per_model", "Number of cache hits per model", "counter")
    misses = Family("nv_cache_num_misses_per_model", "Number of cache misses per model", "counter")
    hit_time = Family(
        "nv_cache_hit_duration_per_model", "Total cache hit duration per model, in microseconds", "counter"
    )
    miss_time = Family(
        "nv_cache_miss_duration_per_model",
        "Total cache miss (insert+lookup) duration per model, in microseconds",
        "counter",
    )
    for model in models:
        statistics = model.statistics
        if statistics.caches:
            hits.add(model.labels, statistics.cache_hits.count)
            misses.add(model.labels, statistics.cache_misses.count)
            hit_time.add(model.labels, statistics.cache_hits.ns // _NS_IN_US)
            miss_time.add(model.labels, statistics.cache_misses.ns // _NS_IN_US)
    return [hits, hit_time, misses, miss_time]


def _summaries(models: list[ModelSeries], quantiles: Sequence[Quantile]) -> Iterator[Family]:
    """Yield the summaries; as in Triton, a model whose responses are cached has none of whole requests."""
    shares = [(f"{share:g}", share) for share, _ in quantiles]
    for name, text, _ in _STAGES:
        prefix = "Summary of" if name in ("request", "queue") else "Cumulative"
        family = Family(f"nv_inference_{name}_summary_us", f"{prefix} {text}", "summary")
        for model in models:
            if not (name == "request" and model.statistics.caches):
                _add_summary(family, model, name, shares)
        yield family
    for name in ("hit", "miss"):
        text = f"Summary of cache {name} counts/durations per model, in microseconds."
        family = Family(f"nv_cache_{name}_summary_per_model", text, "summary")
        for model in models:
            if model.statistics.caches:
                _add_summary(family, model, f"cache_{name}", shares)
        yield family


def _add_summary(family: Family, model: ModelSeries, stage: str, shares: Sequence[tuple[str, float]]) -> None:
    summaries = model.statistics.summaries
    if summaries is None:
        return
    summaries.advance(model.now)
    summary = summaries.stages[stage]
    values = [(text, summary.quantile(share) / _NS_IN_US) for text, share in shares]
    family.add_summary(model.labels, values, summary.ns / _NS_IN_US, summary.count)


def _success(models: list[ModelSeries]) -> Family:
    family = Family(
        "nv_inference_request_success", "Number of successful inference requests, all batch sizes", "counter"
    )
    for model in models:
        family.add(model.labels, model.statistics.success.count)
    return family


def _failure(models: list[ModelSeries]) -> Family:
    family = Family("nv_inference_request_failure", "Number of failed inference requests, all batch sizes", "counter")
    for model in models:
        counts = dict.fromkeys([reason for reason in FailureReason if reason not in _REASONS], 0)
        for reason, count in model.statistics.failures.items():
            counts[_REASONS.get(reason, reason)] += count
        for reason, count in counts.items():
            family.add({**model.labels, "reason": reason.value}, count)
    return family


def _counts(models: list[ModelSeries]) -> list[Family]:
    count = Family("nv_inference_count", "Number of inferences performed (does not include cached requests)", "counter")
    executions = Family(
        "nv_inference_exec_count",
        "Number of model executions performed (does not include cached requests)",
        "counter",
    )
    pending = Family(
        "nv_inference_pending_request_count",
        "Instantaneous number of pending requests awaiting execution per-model.",
        "gauge",
    )
    load = Family("nv_model_load_duration_secs", "Model load time in seconds", "gauge")
    for model in models:
        count.add(model.labels, model.statistics.inference_count)
        executions.add(model.labels, model.statistics.execution_count)
        pending.add(model.labels, model.statistics.pending)
        load.add(model.labels, model.statistics.load_seconds)
    return [count, executions, pending, load]


def _first_response(models: list[ModelSeries], of_all: bool) -> Family:
    """Return the histogram of decoupled models, or `of_all`; `argosy_first_response_duration_seconds` has all."""
    family = Family(
        FIRST_RESPONSE,
        "Duration from request to first response in milliseconds",
        "histogram",
    )
    bounds, texts = [bound * _NS_IN_MS for bound in _FIRST_RESPONSE_MS], bound_texts(_FIRST_RESPONSE_MS)
    for model in models:
        if model.service is None or not (of_all or model.service.decoupled):
            continue
        own = model.statistics.first_response_ms
        if own is not None:
            own_texts = bound_texts([bound / _NS_IN_MS for bound in own.bounds])
            family.add_buckets(model.labels, own_texts, own.counts, own.ns / _NS_IN_MS)
        else:
            histogram = model.statistics.first_responses()
            family.add_buckets(model.labels, texts, histogram.counts_in(bounds), histogram.ns / _NS_IN_MS)
    return family

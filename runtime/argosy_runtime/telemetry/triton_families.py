"""Triton's metrics of models (`nv_inference_*`), made from the statistics when they are scraped: its names, its units
(microseconds, milliseconds), its reasons of failure.
"""

from typing import Final

from argosy_runtime.errors import FailureReason

from .exposition import Family, bound_texts
from .series import ModelSeries

_FIRST_RESPONSE_MS: Final = (100, 500, 2000, 5000)
_NS_IN_MS: Final = 1_000_000

# Triton has four reasons: a timeout in the queue is a rejection there, a model short of memory a failed one.
_REASONS = {
    FailureReason.TIMEOUT: FailureReason.REJECTED,
    FailureReason.OUT_OF_MEMORY: FailureReason.BACKEND,
    FailureReason.INVALID: FailureReason.OTHER,
}

_DURATIONS = (
    ("nv_inference_request_duration_us", "Cumulative inference request duration in microseconds", "success"),
    ("nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds", "queue"),
    (
        "nv_inference_compute_input_duration_us",
        "Cumulative compute input duration in microseconds",
        "compute_input",
    ),
    (
        "nv_inference_compute_infer_duration_us",
        "Cumulative compute inference duration in microseconds",
        "compute_infer",
    ),
    (
        "nv_inference_compute_output_duration_us",
        "Cumulative inference compute output duration in microseconds",
        "compute_output",
    ),
)


def triton_families(models: list[ModelSeries]) -> list[Family]:
    """Return Triton's families of all models' statistics."""
    families = [_success(models), _failure(models), *_counts(models), _first_response(models)]
    for name, text, attribute in _DURATIONS:
        family = Family(name, text, "counter")
        for model in models:
            family.add(model.labels, getattr(model.statistics, attribute).ns // 1_000)
        families.append(family)
    return families


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


def _first_response(models: list[ModelSeries]) -> Family:
    """Return the histogram of decoupled models, as Triton does; `argosy_first_response_duration_seconds` has all."""
    family = Family(
        "nv_inference_first_response_histogram_ms",
        "Duration from request to first response in milliseconds",
        "histogram",
    )
    bounds, texts = [bound * _NS_IN_MS for bound in _FIRST_RESPONSE_MS], bound_texts(_FIRST_RESPONSE_MS)
    for model in models:
        if model.service is not None and model.service.decoupled:
            histogram = model.statistics.first_responses()
            family.add_buckets(model.labels, texts, histogram.counts_in(bounds), histogram.ns / _NS_IN_MS)
    return family

"""Triton's metrics (`nv_*`), made from the statistics when they are scraped."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from argosy_runtime.device_arrays import DeviceCopies

from .exposition import Family
from .statistics import ModelStatistics


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """One model version and its labels (`metric_tags` included); how many times it could not be loaded."""

    labels: Mapping[str, str]
    statistics: ModelStatistics
    failed_loads: int = 0


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


def model_families(series: Iterable[ModelSeries]) -> list[Family]:
    """The families of all models' statistics."""
    models = list(series)
    families = [_success(models), _failure(models), *_counts(models), _failed_loads(models)]
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
        for reason, count in model.statistics.failures.items():
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


def _failed_loads(models: list[ModelSeries]) -> Family:
    """Triton has no such metric."""
    family = Family("argosy_model_load_failure_count", "Number of loads of a model version that failed", "counter")
    for model in models:
        family.add(model.labels, model.failed_loads)
    return family


def device_families(copies: DeviceCopies) -> list[Family]:
    """What the server's own process copied between hosts and devices. Triton has no such metrics."""
    count = Family("argosy_device_copy_count", "Number of arrays copied between host and device memory", "counter")
    size = Family("argosy_device_copy_bytes", "Bytes copied between host and device memory", "counter")
    for direction, one_way in (("to_host", copies.to_host), ("to_device", copies.to_device)):
        count.add({"direction": direction}, one_way.arrays)
        size.add({"direction": direction}, one_way.bytes)
    return [count, size]

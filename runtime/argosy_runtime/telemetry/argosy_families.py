"""Argosy's own metrics of models (`argosy_*`), made from the statistics when they are scraped.

What Triton does not expose, or not so that it can be added up over servers: durations as histograms, instances and
how busy they are, batches by their rows, failures by all their reasons. Units are seconds; counters end in `_total`.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from argosy_runtime.histograms import DurationHistogram
from argosy_runtime.tensors.device_arrays import DeviceTransfers

from .engine_families import engine_families
from .exposition import Family, bound_texts
from .series import InService, ModelSeries
from .shadow.families import shadow_families
from .statistics import ModelStatistics
from .variant_families import variant_families

_NS: Final = 1e9
_MILLION: Final = 1e6
_ROWS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_ROWS_TEXTS: Final = bound_texts(_ROWS)


def argosy_families(models: list[ModelSeries], now: int) -> list[Family]:
    """Return the families of all models' statistics; `now` is the time of the clock that measures them, in
    nanoseconds.
    """
    serving = [(model, model.service) for model in models if model.service is not None]
    with_instances = [(model, service) for model, service in serving if service.instances is not None]
    decoupled = [model for model, service in serving if service.decoupled]
    return [
        *_durations([model for model, _ in serving], [model for model, _ in with_instances], decoupled),
        *_instances(with_instances, now),
        *_gauges(serving),
        *engine_families(models),
        *variant_families(serving),
        *_traffic(models),
        *shadow_families(models),
        _failures(models),
        _model_errors([model for model, _ in serving]),
        _failed_loads(models),
    ]


def _durations(
    models: list[ModelSeries], with_instances: list[ModelSeries], decoupled: list[ModelSeries]
) -> list[Family]:
    return [
        _histograms(
            "argosy_request_duration_seconds",
            "From a request that succeeded to its last response",
            models,
            ModelStatistics.durations,
        ),
        _histograms(
            "argosy_queue_duration_seconds",
            "How long requests that succeeded waited for an instance",
            with_instances,
            lambda statistics: statistics.queueing,
        ),
        _histograms(
            "argosy_first_response_duration_seconds",
            "From a request to its first response",
            models,
            ModelStatistics.first_responses,
        ),
        _histograms(
            "argosy_between_responses_duration_seconds",
            "From one response of a decoupled model to the next one to the same request",
            decoupled,
            lambda statistics: statistics.between_responses,
        ),
    ]


def _histograms(
    name: str, text: str, models: list[ModelSeries], of: Callable[[ModelStatistics], DurationHistogram]
) -> Family:
    family = Family(name, text, "histogram")
    for model in models:
        family.add_histogram(model.labels, of(model.statistics))
    return family


def _instances(models: list[tuple[ModelSeries, InService]], now: int) -> list[Family]:
    there = Family("argosy_instances", "Instances that are loaded and take batches", "gauge")
    busy = Family("argosy_instances_busy", "Instances that have a batch now", "gauge")
    busy_time = Family("argosy_instance_busy_seconds_total", "Time that instances had batches, all together", "counter")
    executing = Family(
        "argosy_execution_seconds_total", "Time that executions of batches took, all together", "counter"
    )
    rows = Family("argosy_batch_rows", "Executions by the rows of their batches", "histogram")
    batched = Family("argosy_batched_rows_total", "Rows of all executions, by the size of their batches", "counter")
    took = Family("argosy_batch_seconds_total", "Time of all executions, by the size of their batches", "counter")
    lost = Family("argosy_instances_lost_total", "Instances that ended by themselves while they served", "counter")
    for model, service in models:
        statistics = model.statistics
        there.add(model.labels, service.instances or 0)
        if not statistics.answers_later:
            busy.add(model.labels, statistics.busy)
            busy_time.add(model.labels, statistics.busy_ns(now) / _NS)
            executing.add(model.labels, statistics.execution_ns() / _NS)
        lost.add(model.labels, statistics.instances_lost)
        counts, total = _rows(statistics)
        rows.add_buckets(model.labels, _ROWS_TEXTS, counts, total)
        for size, sums in _sizes(statistics).items():
            batched.add({**model.labels, "rows": size}, sums.rows)
            if not statistics.answers_later:
                took.add({**model.labels, "rows": size}, sums.ns / _NS)
    return [there, busy, busy_time, executing, rows, batched, took, lost]


@dataclass(slots=True)
class _Size:
    """The rows of all executions of some sizes of batches, and their time."""

    rows: int = 0
    ns: int = 0


def _sizes(statistics: ModelStatistics) -> dict[str, _Size]:
    """Return the sums of each bucket of `argosy_batch_rows` that has executions, by its bound."""
    sizes: dict[str, _Size] = {}
    for rows, batch in sorted(statistics.batches.items()):
        size = sizes.setdefault(_ROWS_TEXTS[bisect_left(_ROWS, rows)], _Size())
        size.rows += rows * batch.compute_infer.count
        size.ns += batch.compute_input.ns + batch.compute_infer.ns + batch.compute_output.ns
    return sizes


def _rows(statistics: ModelStatistics) -> tuple[list[int], int]:
    """Return the executions by their rows, and the sum of all rows."""
    counts, total = [0] * (len(_ROWS) + 1), 0
    for rows, batch in statistics.batches.items():
        executions = batch.compute_infer.count
        counts[bisect_left(_ROWS, rows)] += executions
        total += rows * executions
    return counts, total


def _gauges(models: list[tuple[ModelSeries, InService]]) -> list[Family]:
    running = Family("argosy_running_requests", "Requests that are being executed now", "gauge")
    batch = Family("argosy_max_batch_size", "Most rows of a batch; 0: no batching", "gauge")
    delay = Family("argosy_max_queue_delay_seconds", "How long a batch may wait for more requests", "gauge")
    for model, service in models:
        running.add(model.labels, service.running)
        batch.add(model.labels, service.max_batch_size)
        delay.add(model.labels, service.max_queue_delay_us / 1e6)
    return [running, batch, delay]


def _failures(models: list[ModelSeries]) -> Family:
    family = Family("argosy_request_failures_total", "Requests that failed, by why", "counter")
    for model in models:
        for reason, count in model.statistics.failures.items():
            family.add({**model.labels, "reason": reason.value}, count)
    return family


def _model_errors(models: list[ModelSeries]) -> Family:
    text = "Requests that the model itself answered with an error that they did not cause"
    family = Family("argosy_model_errors_total", text, "counter")
    for model in models:
        family.add(model.labels, model.statistics.model_errors)
    return family


def _failed_loads(models: list[ModelSeries]) -> Family:
    family = Family("argosy_model_load_failure_count", "Number of loads of a model version that failed", "counter")
    for model in models:
        family.add(model.labels, model.failed_loads)
    return family


def _traffic(models: list[ModelSeries]) -> list[Family]:
    """Return the weights of versions, and the requests that they were sent, of models with `version_traffic`."""
    weights = Family("argosy_version_weight", "Share of the requests without a version that it is to get", "gauge")
    requests = Family(
        "argosy_version_requests_total", "Requests without a version that it was sent, by what decided", "counter"
    )
    for model in models:
        if model.traffic is not None:
            weights.add(model.labels, model.traffic.weight / _MILLION)
            for by, count in model.traffic.routed.items():
                requests.add({**model.labels, "by": by}, count)
    return [weights, requests]


def device_families(transfers: DeviceTransfers) -> list[Family]:
    """Return what the server's own process copied between hosts and devices."""
    count = Family("argosy_device_copy_count", "Number of arrays copied between host and device memory", "counter")
    size = Family("argosy_device_copy_bytes", "Bytes copied between host and device memory", "counter")
    for direction, one_way in (("to_host", transfers.to_host), ("to_device", transfers.to_device)):
        count.add({"direction": direction}, one_way.arrays)
        size.add({"direction": direction}, one_way.bytes)
    return [count, size]

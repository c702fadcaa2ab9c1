"""What a server exposes of a version, as its own code writes it, read twice: every count of the analysis arrives."""

import time

import pytest

from argosy.autoscaling.metrics.names import Failure
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.autoscaling.metrics.versions import VersionMarks, version_signals
from argosy.autoscaling.metrics.windows import ServerWindow
from argosy.signals.exposition import samples
from argosy.signals.samples import exposed
from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import FailureReason
from argosy_runtime.telemetry.argosy_families import argosy_families
from argosy_runtime.telemetry.exposition import exposition
from argosy_runtime.telemetry.series import InService, ModelSeries
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.telemetry.triton_families import triton_families

MS = 1_000_000
MODEL = InService(running=0, instances=1, decoupled=False, max_batch_size=8, max_queue_delay_us=500)


def text(statistics: ModelStatistics) -> str:
    series = [ModelSeries({"model": "m", "version": "2"}, statistics, 0, MODEL)]
    return exposition([*triton_families(series), *argosy_families(series, time.monotonic_ns())]).decode()


def answer(statistics: ModelStatistics, rows: int, ms: float, requests: int) -> None:
    """Count a batch of so many requests."""
    statistics.ran(requests, rows, ExecutionTimes(0, round(ms * MS), 0))
    statistics.succeeded(requests, requests * 2 * round(ms * MS), requests * MS, rows)
    for _ in range(requests):
        statistics.single.add(2 * round(ms * MS))
        statistics.queueing.add(MS)


def read(window: ServerWindow, marks: VersionMarks) -> tuple[VersionSignals, VersionMarks]:
    versions, marks = version_signals({"s": {"m": "model"}}, {"s": window}, {"model": 0.0}, marks)
    return versions["model"][2], marks


def test_every_count_arrives() -> None:
    statistics = ModelStatistics()
    answer(statistics, 1, 4, 1)
    window = ServerWindow().after(exposed(samples(text(statistics)), 10.0))
    _, marks = read(window, VersionMarks())
    answer(statistics, 1, 5, 1)
    for _ in range(2):
        answer(statistics, 7, 9, 3)
    for reason in (FailureReason.BACKEND, FailureReason.INVALID, FailureReason.OUT_OF_MEMORY):
        statistics.failed(MS, reason)
    statistics.model_errors += 2
    statistics.instances_lost += 1
    signals, _ = read(window.after(exposed(samples(text(statistics)), 11.0)), marks)
    assert (signals.answered, signals.errors, signals.instances_lost) == (7, 2, 1)
    assert signals.failures == dict.fromkeys((Failure.BACKEND, Failure.INVALID, Failure.OUT_OF_MEMORY), 1)
    assert (signals.failed, signals.requests) == (4, 9)
    assert signals.queue_delay_s == pytest.approx(0.0005)
    assert signals.latency is not None
    assert signals.queue is not None
    assert signals.latency.histogram.total_s == pytest.approx(0.118)
    assert (signals.latency.count, signals.queue.count) == (7, 7)
    assert signals.executions.keys() == {1, 8}
    assert signals.executions[1].seconds == pytest.approx(0.005)
    large = signals.executions[8]
    assert (large.count, large.rows, large.seconds) == (2, 14, pytest.approx(0.018))

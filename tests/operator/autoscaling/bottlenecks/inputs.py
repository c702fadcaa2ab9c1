"""Models and ensembles with measurements, for the tests of bottlenecks."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from argosy.autoscaling.bottlenecks.subjects import PathStage, Subject
from argosy.autoscaling.metrics.histograms import Distribution
from argosy.autoscaling.metrics.signals import GpuSignals, Signals

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
IDLE, USED, FULL = 0.12, 0.8, 0.97


def at(seconds: float) -> datetime:
    """Return the time so many seconds after the start."""
    return START + timedelta(seconds=seconds)


def measured(wait: float = 0.001, compute: float = 0.02, when: datetime = START, **others: Any) -> Signals:
    """Return the signals of a model whose requests wait and are executed for so long, in seconds."""
    others.setdefault("latency", Distribution(mean=wait + compute, p99=2 * (wait + compute)))
    others.setdefault("arrivals", 50.0)
    return Signals(when, 60.0, queue=Distribution(mean=wait), compute=compute, **others)


def gpu(used: float, memory: float = 0.5) -> GpuSignals:
    """Return a GPU of 80 GB."""
    return GpuSignals(used, round(memory * 80e9), round(80e9))


def stage(name: str, signals: Signals, **others: Any) -> PathStage:
    """Return a stage, by default on a GPU that is used well."""
    others.setdefault("gpus", (gpu(USED),))
    return PathStage(name, signals, **others)


def model(signals: Signals, latency: dict[str, float] | None = None, **others: Any) -> Subject:
    """Return a model by itself."""
    return Subject("bert", signals, (stage("bert", signals, **others),), latency=latency or {})


def ensemble(*stages: PathStage, latency_s: float | None = None, **others: Any) -> Subject:
    """Return an ensemble of stages in a row; `latency_s`: the measured one, by default the sum of theirs."""
    chain = tuple(replace(s, reads=(index - 1,) if index else ()) for index, s in enumerate(stages))
    total = sum((s.signals.queue.mean or 0) + (s.signals.compute or 0) for s in stages)
    signals = Signals(START, 60.0, latency=Distribution(mean=latency_s or total, p99=2 * (latency_s or total)))
    return Subject("pipeline", signals, chain, is_ensemble=True, **others)

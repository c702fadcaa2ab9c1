"""What is looked at: a model, or an ensemble with its steps' models, with what was measured of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from argosy.autoscaling.metrics.signals import GpuSignals, Signals


class Lever(StrEnum):
    """What Argosy may change by itself, where the spec leaves it free."""

    WINDOW = "window"
    INSTANCES = "instances"
    REPLICAS = "replicas"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Stage:
    """One model as requests pass it.

    `window_s`: how long a batch waits for more; None where requests are not joined into batches. `joins`: whether they
    could be, as those of sequences cannot. `instances` there are
    on each device of each of its `replicas`. `gpus`: those of the servers where it sits; none on the CPU. `reads`: the
    stages, by their place in the subject's, whose answers it waits for. `levers`: what Argosy decides of it.
    """

    name: str
    signals: Signals
    window_s: float | None = None
    joins: bool = True
    instances: int = 1
    replicas: int = 1
    gpus: tuple[GpuSignals, ...] = ()
    reads: tuple[int, ...] = ()
    levers: frozenset[Lever] = frozenset()


@dataclass(frozen=True, slots=True)
class Subject:
    """A model, whose one stage is itself, or an ensemble: its steps, each after those that it reads.

    `latency`: the SLO's percentiles, by name, in seconds.
    """

    name: str
    signals: Signals
    stages: tuple[Stage, ...]
    is_ensemble: bool = False
    latency: Mapping[str, float] = field(default_factory=dict)

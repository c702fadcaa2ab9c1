"""What models were measured to use of a GPU, and where that counts for a plan.

A declared footprint is a guess until the model has run. A plan takes the larger one of the two, as far as the
measurement is a fact about what it places: of the same revision, on a GPU of a product that the pool has. Memory of a
process on the CPU says nothing about a GPU.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from argosy.api import InferenceModel
from argosy.api.model.footprint import Device, Footprint
from argosy.api.values.identity import Identity
from argosy.planning.facts import Node
from argosy.planning.rollouts.revision import revision_of
from argosy.planning.validation.language import ENGINES

NOTICEABLE: Final = 0.2
"""Smallest difference from the declared footprint that a user is told of, as a share of the latter."""

CRASHES_COUNT: Final = timedelta(days=1)
"""For how long what a process had when it crashed is left to its model: until the next day's traffic, which may be as
heavy, has passed."""


@dataclass(frozen=True, slots=True)
class Crash:
    """The most bytes of a GPU for one instance before a process of a model crashed, and when it did."""

    per_instance: int
    at: datetime

    def counts(self, now: datetime) -> bool:
        """Return whether it is still taken into account."""
        return now < self.at + CRASHES_COUNT


@dataclass(frozen=True, slots=True)
class MeasuredFootprint:
    """Memory of the processes of one version on a server, of the server where it is the most.

    `host` and `gpu` (on the GPU where it is the most): bytes of all `instances` there, None where a server does not
    measure them. `peak`: the most bytes of a GPU since the time `since` with this revision, as many instances, and GPUs
    of this `product`. `revision`: the name of the spec's revision that was loaded. `crashed`: a process that it is of
    has crashed since. `crash`: the last one of this revision, with its highest peak.
    """

    measured_at: datetime
    host: int | None
    gpu: int | None
    peak: int | None = None
    since: datetime | None = None
    version: int = 0
    revision: str = ""
    instances: int = 1
    server: str = ""
    product: str = ""
    crashed: bool = False
    crash: Crash | None = None

    @property
    def per_instance(self) -> int:
        """The most bytes of a GPU for one instance, rounded up; 0 where no GPU was measured.

        Instances in one process share some of it, so that it is an upper bound for more instances.
        """
        return -(-(self.peak or 0) // max(1, self.instances))


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """Bytes of a GPU that one instance was measured to use at most, of so many `instances`, since a time.

    `limit`: bytes of the pool's largest GPU without its headroom. What runs beyond it fits all the same, and takes no
    more than that, or the measurement would leave it without a place. `crash`: a crash that still counts; where only
    that does, `per_instance` is 0.
    """

    per_instance: int
    instances: int
    since: datetime
    product: str
    limit: int
    crash: Crash | None = None

    def of(self, instances: int) -> int:
        """Return the bytes that a replica with so many instances takes of its GPU."""
        size = self.per_instance * instances
        return min(size, self.limit) if instances <= self.instances else size

    def peak_of(self, instances: int) -> int:
        """Return the bytes that so many instances had, as one of them had before it crashed; at most a whole GPU."""
        return min(self.crash.per_instance * instances, self.limit) if self.crash is not None else 0

    def deviates_from(self, declared: int) -> bool:
        """Return whether the difference from the declared bytes of an instance is one to tell."""
        return abs(self.per_instance - declared) > NOTICEABLE * declared


def measured_memory(
    models: Iterable[InferenceModel],
    footprints: Mapping[Identity, MeasuredFootprint],
    nodes: Iterable[Node],
    headroom: int,
    now: datetime,
) -> dict[str, MeasuredMemory]:
    """Return what counts of the measurements, by model name. `footprints`: by identity; `headroom`: thousandths of a
    GPU's memory that stay free.

    A model that declares no memory keeps the measurement of its former revision, or of a process that has crashed,
    until the next one is measured: as long as nothing is known of that, nothing else is a better estimate. Where memory
    is declared, only its own revision counts, and of processes that have not crashed. What a crashed one had is no
    footprint, and is left to the model for a day all the same. Models with GPUs for themselves have no neighbours, and
    are placed by what they declare.
    """
    largest: dict[str, int] = {}
    for node in nodes:
        for gpu in node.gpus:
            if not gpu.is_cpu:
                largest[node.product] = max(largest.get(node.product, 0), gpu.memory)
    limit = max(largest.values(), default=0) * (1000 - headroom) // 1000
    counting: dict[str, MeasuredMemory] = {}
    for model in models:
        footprint = footprints.get(model.identity)
        if footprint is None or footprint.product not in largest or model.spec.gpus or model.spec.device is Device.CPU:
            continue
        size, crash = footprint.per_instance if _counts(model, footprint) else 0, _crash(model, footprint, now)
        if size or crash is not None:
            since = footprint.since or footprint.measured_at
            counting[model.name] = MeasuredMemory(size, footprint.instances, since, footprint.product, limit, crash)
    return counting


def _counts(model: InferenceModel, footprint: MeasuredFootprint) -> bool:
    if not _declares(model):
        return not sizes_itself(model)
    return revision_of(model).name == footprint.revision and not footprint.crashed


def _crash(model: InferenceModel, footprint: MeasuredFootprint, now: datetime) -> Crash | None:
    """Return the crash that still counts: not of a model that has a GPU of its own until it is measured."""
    crash, shares = footprint.crash, _declares(model) or footprint.per_instance
    if crash is None or not shares or sizes_itself(model) or revision_of(model).name != footprint.revision:
        return None
    return crash if crash.counts(now) else None


def _declares(model: InferenceModel) -> bool:
    return (model.spec.footprint or Footprint()).gpu_memory is not None


def sizes_itself(model: InferenceModel) -> bool:
    """Return whether the model's engine takes a share of whichever GPU it is on, unless its memory is declared. What it
    took of one GPU says nothing of another one.
    """
    return model.spec.backend in ENGINES

"""The subjects of rules: models, and ensembles with the models of their steps, with what was measured of each."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from argosy.api import Ensemble, InferenceModel, Member
from argosy.api.model.scaling.slo import Percentiles, Slo
from argosy.autoscaling.metrics.signals import GpuSignals, PoolSignals, Signals
from argosy.autoscaling.policy import Bounds
from argosy.planning.facts import CurrentServer

_US, _MS = 1e6, 1e3


class Lever(StrEnum):
    """A setting that Argosy may change by itself if the spec leaves it open."""

    WINDOW = "window"
    INSTANCES = "instances"
    REPLICAS = "replicas"
    BATCH = "batch"


def levers_of(bounds: Bounds) -> frozenset[Lever]:
    """Return what bounds let Argosy change."""
    levers = {
        Lever.WINDOW: bounds.max_window_s is not None,
        Lever.INSTANCES: bounds.max_instances > bounds.min_instances,
        Lever.REPLICAS: bounds.max_replicas > bounds.min_replicas,
        Lever.BATCH: bounds.smaller_batches and bounds.max_batch > 1,
    }
    return frozenset(lever for lever, is_free in levers.items() if is_free)


@dataclass(frozen=True, slots=True)
class PathStage:
    """One model on the path of a request.

    `window_s`: how long a batch waits for more requests; None without batching. `joins`: whether requests can be
    batched; those of sequences cannot. `instances`: on each device of each of its `replicas`. `gpus`: the GPUs of the
    model, empty on the CPU. `reads`: indexes of the subject's stages whose outputs it reads. `levers`: settings that
    Argosy decides.
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
    """A model with one stage, or an ensemble with its steps in the order of their data flow.

    `latency`, `first_token` and `between_tokens`: the SLO's percentiles, by name, in seconds.
    """

    name: str
    signals: Signals
    stages: tuple[PathStage, ...]
    is_ensemble: bool = False
    latency: Mapping[str, float] = field(default_factory=dict)
    first_token: Mapping[str, float] = field(default_factory=dict)
    between_tokens: Mapping[str, float] = field(default_factory=dict)


def subjects(
    members: Iterable[Member],
    signals: PoolSignals,
    servers: Collection[CurrentServer],
    levers: Mapping[str, Collection[Lever]] | None = None,
) -> dict[str, Subject]:
    """Return the members that were measured, by name; an ensemble only if the models of all its steps were.

    `members` of a pool have the instances and the window that were decided. `servers`: where they are placed.
    `levers`: settings of each that Argosy decides.
    """
    inputs = _Inputs({member.name: member for member in members}, signals, _placements(servers), levers or {})
    measured = ((name, inputs.subject(member)) for name, member in inputs.members.items())
    return {name: subject for name, subject in measured if subject is not None}


def _placements(servers: Iterable[CurrentServer]) -> dict[str, list[tuple[str, list[int]]]]:
    """Return the servers of each model, with the indexes of its GPUs among the server's, not among the node's."""
    gpus_of: dict[str, list[tuple[str, list[int]]]] = {}
    for server in servers:
        indexes = {gpu: index for index, gpu in enumerate(sorted(server.gpus))}
        for model, gpus in server.placed.items():
            own = [indexes[gpu] for gpu in gpus if gpu in indexes]
            gpus_of.setdefault(model, []).append((server.name, own))
    return gpus_of


@dataclass(frozen=True, slots=True)
class _Inputs:
    members: Mapping[str, Member]
    signals: PoolSignals
    placements: Mapping[str, list[tuple[str, list[int]]]]
    levers: Mapping[str, Collection[Lever]]

    def subject(self, member: Member) -> Subject | None:
        measured = self.signals.members.get(member.name)
        stages = self._stages(member)
        if measured is None or not stages:
            return None
        slo = member.spec.slo or Slo()
        latency, first_token, between_tokens = (
            _seconds(percentiles) for percentiles in (slo.latency, slo.time_to_first_token, slo.inter_token_latency)
        )
        return Subject(
            member.name, measured, stages, isinstance(member, Ensemble), latency, first_token, between_tokens
        )

    def _stages(self, member: Member) -> tuple[PathStage, ...]:
        """Return the stages of a member; none if one of them was not measured."""
        if isinstance(member, InferenceModel):
            stage = self._stage(member)
            return () if stage is None else (stage,)
        stages: list[PathStage] = []
        ends: dict[int, tuple[int, ...]] = {}
        for index, before in _in_order(member):
            step = self.members.get(member.spec.steps[index].model)
            inner = self._stages(step) if step is not None else ()
            if not inner:
                return ()
            reads = tuple(dict.fromkeys(end for step in before for end in ends[step]))
            ends[index] = tuple(len(stages) + end for end in _last(inner))
            stages += _shifted(inner, len(stages), reads)
        return tuple(stages)

    def _stage(self, model: InferenceModel) -> PathStage | None:
        measured = self.signals.members.get(model.name)
        if measured is None:
            return None
        if measured.max_batch is None:
            measured = replace(measured, max_batch=model.spec.max_batch_size)
        batching = model.spec.batching
        return PathStage(
            name=model.name,
            signals=measured,
            window_s=None if batching is None else batching.max_queue_delay_microseconds / _US,
            joins=model.spec.sequence is None,
            instances=model.spec.instances or sum(group.count for group in model.spec.instance_groups) or 1,
            replicas=len(self.placements.get(model.name, ())),
            gpus=tuple(self._gpus(model.name)),
            levers=frozenset(self.levers.get(model.name, ())),
        )

    def _gpus(self, model: str) -> Iterator[GpuSignals]:
        """Yield the measured GPUs that a model is on."""
        for server, indexes in self.placements.get(model, ()):
            for index in indexes:
                if (gpu := self.signals.gpus.get((server, index))) is not None:
                    yield gpu


def _seconds(percentiles: Percentiles | None) -> dict[str, float]:
    """Return the percentiles that are set, in seconds, by name."""
    return {name: value / _MS for name, value in percentiles or () if value is not None}


def _in_order(ensemble: Ensemble) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield steps by index, each after the steps whose outputs it reads, with these."""
    steps, done = ensemble.spec.steps, set[int]()
    writer = {tensor: index for index, step in enumerate(steps) for tensor in step.outputs.values()}
    reads = [{writer[name] for name in step.inputs.values() if name in writer} for step in steps]
    while len(done) < len(steps):
        ready = [index for index in range(len(steps)) if index not in done and reads[index] <= done]
        if not ready:
            return  # steps that wait for each other: such an ensemble is not accepted
        for index in ready:
            yield index, tuple(sorted(reads[index]))
        done.update(ready)


def _last(stages: tuple[PathStage, ...]) -> tuple[int, ...]:
    """Return the stages that no other reads."""
    read = {index for stage in stages for index in stage.reads}
    return tuple(index for index in range(len(stages)) if index not in read)


def _shifted(stages: tuple[PathStage, ...], by: int, reads: tuple[int, ...]) -> Iterator[PathStage]:
    """Yield an ensemble's stages after `by` others; its first ones read the stages `reads`."""
    for stage in stages:
        yield replace(stage, reads=tuple(by + index for index in stage.reads) or reads)

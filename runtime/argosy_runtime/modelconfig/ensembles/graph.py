"""The data flow of one ensemble: which step consumes and produces which ensemble tensor, in which order steps can run.

A decoupled step answers any number of times, and the steps that depend on it run once for each of its answers: these
are that step's *stream*.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TypeVar

from tritonclient.grpc.model_config_pb2 import ModelConfig

Item = TypeVar("Item")


def waves(
    items: Iterable[Item],
    needs: Callable[[Item], Set[str]],
    gives: Callable[[Item], Set[str]],
    present: Collection[str],
) -> tuple[tuple[Item, ...], ...]:
    """Return the items by the wave in which they can go at the earliest, each in the order of `items`.

    An item can go when all that it needs is `present` or was produced by earlier waves. Items that never can, for a
    missing need or a cycle, are left out.
    """
    ready = set(present)
    waiting = list(items)
    result: list[tuple[Item, ...]] = []
    while wave := tuple(item for item in waiting if needs(item) <= ready):
        waiting = [item for item in waiting if not needs(item) <= ready]
        result.append(wave)
        ready.update(*map(gives, wave))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class EnsembleStep:
    """One step. `inputs` and `outputs` map the model's tensor names to the ensemble's, sorted by the model's.

    `model_version` -1 leaves the version to the model's policy.
    """

    index: int
    model_name: str
    model_version: int
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    @property
    def consumes(self) -> frozenset[str]:
        """Ensemble tensors that must exist before the step runs."""
        return frozenset(self.inputs.values())

    @property
    def produces(self) -> frozenset[str]:
        """Ensemble tensors that the step writes."""
        return frozenset(self.outputs.values())


@dataclass(frozen=True, slots=True)
class EnsembleGraph:
    """The steps of an ensemble and the tensors between them. Parsing does not validate: the rules do."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[EnsembleStep, ...]

    @classmethod
    def parse(cls, config: ModelConfig) -> "EnsembleGraph":
        """Return the graph of a configuration with `ensemble_scheduling`; no steps where it has none."""
        return cls(
            name=config.name,
            inputs=tuple(spec.name for spec in config.input),
            outputs=tuple(spec.name for spec in config.output),
            steps=tuple(
                EnsembleStep(
                    index=index,
                    model_name=step.model_name,
                    model_version=step.model_version,
                    inputs=dict(sorted(step.input_map.items())),
                    outputs=dict(sorted(step.output_map.items())),
                )
                for index, step in enumerate(config.ensemble_scheduling.step)
            ),
        )

    @property
    def models(self) -> frozenset[str]:
        """Models of the steps."""
        return frozenset(step.model_name for step in self.steps)

    def consumers(self, tensor: str) -> tuple[EnsembleStep, ...]:
        """Return the steps that read an ensemble tensor, in order."""
        return tuple(step for step in self.steps if tensor in step.consumes)

    def producer(self, tensor: str) -> EnsembleStep | None:
        """Return the step that writes an ensemble tensor; None for the ensemble's inputs and unwritten tensors."""
        return next((step for step in self.steps if tensor in step.produces), None)

    def reachable(self) -> frozenset[str]:
        """Return the tensors that exist once every step that can run has run: a step needs all of its inputs."""
        produced = (step.produces for wave in self.waves() for step in wave)
        return frozenset(self.inputs).union(*produced)

    def waves(self) -> tuple[tuple[EnsembleStep, ...], ...]:
        """Return the steps by the wave in which they can run at the earliest; steps that never can are left out."""
        return waves(self.steps, lambda step: step.consumes, lambda step: step.produces, self.inputs)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The streams of an ensemble, each named by the index of its decoupled step; None is the request.

    `streams` has the innermost stream of each step that can run, `output` that of the outputs. `mixed` are the
    steps whose inputs (None: the outputs) come from two streams of which neither stems from the other: their
    answers cannot be paired.
    """

    streams: Mapping[int, int | None]
    output: int | None
    mixed: tuple[EnsembleStep | None, ...]

    @classmethod
    def of(cls, graph: EnsembleGraph, is_decoupled: Callable[[EnsembleStep], bool]) -> "Lineage":
        """Follow the tensors through the graph; steps that can never run are left out."""
        lines: dict[int | None, tuple[int | None, ...]] = {None: (None,)}
        stream_of: dict[str, int | None] = dict.fromkeys(graph.inputs)
        streams: dict[int, int | None] = {}
        mixed: list[EnsembleStep | None] = []

        def innermost(reader: EnsembleStep | None, tensors: Collection[str]) -> int | None:
            sources = {stream_of[tensor] for tensor in tensors if tensor in stream_of}
            stream = max(sources, default=None, key=lambda source: len(lines[source]))
            if not sources <= set(lines[stream]):
                mixed.append(reader)
            return stream

        for step in (step for wave in graph.waves() for step in wave):
            stream = streams[step.index] = innermost(step, step.consumes)
            if is_decoupled(step):
                lines[step.index] = (step.index, *lines[stream])
                stream = step.index
            stream_of.update(dict.fromkeys(step.produces, stream))
        return cls(streams, innermost(None, graph.outputs), tuple(mixed))

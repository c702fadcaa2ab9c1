"""The data flow of one ensemble: which step consumes and produces which ensemble tensor."""

from collections.abc import Mapping
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig

from .waves import waves


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
        """The models the steps run."""
        return frozenset(step.model_name for step in self.steps)

    def consumers(self, tensor: str) -> tuple[EnsembleStep, ...]:
        """Return the steps that read an ensemble tensor, in order."""
        return tuple(step for step in self.steps if tensor in step.consumes)

    def producer(self, tensor: str) -> EnsembleStep | None:
        """Return the step that writes an ensemble tensor; None for the ensemble's inputs and unwritten tensors."""
        return next((step for step in self.steps if tensor in step.produces), None)

    def reachable(self) -> frozenset[str]:
        """Tensors that exist once every step that can run has run: a step needs all of its inputs."""
        produced = (step.produces for wave in self.waves() for step in wave)
        return frozenset(self.inputs).union(*produced)

    def waves(self) -> tuple[tuple[EnsembleStep, ...], ...]:
        """Steps by the wave in which they can run at the earliest; steps that never can are left out."""
        return waves(self.steps, lambda step: step.consumes, lambda step: step.produces, self.inputs)

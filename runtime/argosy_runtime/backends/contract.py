"""What a backend is: how the server asks a framework to load a model and to execute a batch.

A backend is a module of this package with two functions, and a row in the package's table:

    complete_config(model_dir, version_dir, config) -> ModelConfig    what the model file itself knows (autofill)
    load(spec, host) -> ModelInstance        load one instance; raise ServingError (or anything) where it cannot

It is imported only when a model needs it, so heavy frameworks cost nothing to those who do not use them. Everything
here is called on the instance's own thread (or in its own process), never on the event loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, InferResponse


class Isolation(StrEnum):
    """Where an instance runs. A config parameter `ISOLATION` of the same value overrides the backend's default."""

    PROCESS = "process"
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """All that an instance is told when it loads. Picklable as (config bytes, strings)."""

    config: ModelConfig
    version: int
    model_dir: Path
    version_dir: Path
    name: str
    kind: str  # KIND_CPU, KIND_GPU or KIND_MODEL
    device_id: int  # GPU ordinal; 0 for CPU


@dataclass(frozen=True, slots=True)
class ExecutionTimes:
    """Nanoseconds spent on one batch: gathering inputs, the model itself, splitting outputs."""

    compute_input_ns: int
    compute_infer_ns: int
    compute_output_ns: int


class Responder(Protocol):
    """Where the responses of one batch go. Safe to call from any thread, also after `execute` has returned."""

    def send(self, index: int, response: InferResponse) -> None:
        """Answer request `index` of the batch. `response.final` ends it; later sends to it are dropped."""

    def is_cancelled(self, index: int) -> bool:
        """Whether the client of request `index` has gone."""


class Host(Protocol):
    """What the server offers a model while it runs (Triton's business logic scripting). Blocking calls."""

    def infer(self, request: InferRequest, decoupled: bool) -> Sequence[InferResponse]:
        """Run another model of this server; every response, in order, the model's errors on them.

        Without `decoupled` the model must be one that answers once. Raises ServingError where it may not be asked.
        """

    def load_model(self, name: str, config: str | None, files: dict[str, bytes]) -> None:
        """Load or reload a model, as the repository API does."""

    def unload_model(self, name: str, unload_dependents: bool) -> None:
        """Unload a model, as the repository API does."""

    def is_model_ready(self, name: str, version: str) -> bool:
        """Whether a model (version "" = any) can answer."""

    def log(self, level: str, message: str) -> None:
        """A line in the server's log; level is error, warning, info or verbose."""

    def metric(self, family: "MetricFamilySpec", labels: dict[str, str], action: str, value: float) -> float:
        """Act on a custom metric: action is create, increment, set, observe, value or remove. Returns its value."""


@dataclass(frozen=True, slots=True)
class MetricFamilySpec:
    """A custom metric family: kind is counter, gauge or histogram; buckets only for histograms."""

    name: str
    description: str
    kind: str
    buckets: tuple[float, ...] = ()


class ModelInstance(Protocol):
    """One loaded copy of a model."""

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes | None:
        """Work on a batch. When it returns, the instance takes the next one.

        A backend that answers later (decoupled, continuous batching) returns None at once and goes on sending.
        An exception fails every request of the batch that has no final response yet.
        """

    def close(self) -> None:
        """Release everything. Called once; no execute follows."""


__all__ = [
    "ExecutionTimes",
    "Host",
    "InstanceSpec",
    "Isolation",
    "MetricFamilySpec",
    "ModelInstance",
    "Responder",
    "ServingError",
]

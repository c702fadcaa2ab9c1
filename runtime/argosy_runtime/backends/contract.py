"""The contract of a backend: how the server asks a framework to load a model and to execute a batch.

A backend is a module of this package with two functions, and a row in the package's table:

    complete_config(model_dir, version_dir, config) -> ModelConfig    what the model file itself tells (autofill)
    load(spec, host) -> ModelInstance        load one instance; raise ServingError (or anything) where it cannot

A backend is imported only when a model needs it, so heavy frameworks cost nothing where they are not used. Everything
here is called on the instance's own thread (or in its own process), never on the event loop.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

import msgspec
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, InferResponse

from .engines.commands import Command
from .engines.state import EngineState

_FAMILY_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Isolation(StrEnum):
    """Where an instance runs. A config parameter `ISOLATION` of the same value overrides the backend's default."""

    PROCESS = "process"
    THREAD = "thread"


class HostPolicy(msgspec.Struct, frozen=True):
    """Where instances of one host policy run: on these processors, none for any; with memory of this NUMA node."""

    cpu_cores: tuple[int, ...] = ()
    numa_node: int | None = None

    def with_settings(self, other: "HostPolicy") -> "HostPolicy":
        """Return the same with the settings that the other policy has."""
        node = self.numa_node if other.numa_node is None else other.numa_node
        return HostPolicy(other.cpu_cores or self.cpu_cores, node)


ANYWHERE: Final = HostPolicy()


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """The arguments that an instance is loaded with. Nothing in it belongs to this process."""

    config: ModelConfig
    version: int
    model_dir: Path
    version_dir: Path
    name: str
    kind: str  # KIND_CPU, KIND_GPU or KIND_MODEL
    device_id: int  # GPU ordinal; 0 for CPU
    environment: Path | None = None  # folder of the backend's engine environment, where a flag names one
    host_policy: HostPolicy = ANYWHERE
    requirements: Path | None = None  # folder of environments with models' requirements, where a flag allows them

    @property
    def rank(self) -> int:
        """Order in which a model's instances take batches: 0 on GPUs, 1 on the CPU."""
        return int(self.kind == "KIND_CPU")


@dataclass(frozen=True, slots=True)
class ExecutionTimes:
    """Nanoseconds spent on one batch: gathering inputs, the model itself, splitting outputs."""

    compute_input_ns: int
    compute_infer_ns: int
    compute_output_ns: int


class Responder(Protocol):
    """Receiver of one batch's responses. Safe to call from any thread, also after `execute` has returned."""

    def send(self, index: int, response: InferResponse, wait: bool = True) -> None:
        """Answer request `index` of the batch. `response.final` ends it; later sends to it are dropped.

        Waits, before a response that is not the last, while the client reads slower than it is answered. Without
        `wait` it never does: a backend that answers many requests from one thread looks at `is_paused` first.
        """

    def reschedule(self, index: int) -> None:
        """End this execution of request `index` without a last response: it is scheduled again."""

    def is_cancelled(self, index: int) -> bool:
        """Return whether the client of request `index` has gone."""

    def is_paused(self, index: int) -> bool:
        """Return whether `send` would wait, for a backend that answers many requests from one thread."""


@dataclass(frozen=True)
class MetricFamilySpec:
    """A custom metric family: kind is counter, gauge or histogram; buckets only for histograms.

    Raises ValueError for a name that Prometheus does not take, and for buckets that do not grow.
    """

    name: str
    description: str
    kind: str
    buckets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not _FAMILY_NAME.fullmatch(self.name):
            raise ValueError(f"'{self.name}' cannot be a metric family's name: it must match {_FAMILY_NAME.pattern}")
        if self.kind not in ("counter", "gauge", "histogram"):
            raise ValueError(f"metric family '{self.name}' cannot be a {self.kind}")
        if not all(low < high for low, high in pairwise(self.buckets)) or any(map(isnan, self.buckets)):
            raise ValueError("Bucket Boundaries must be strictly sorted")


def check_labels(family: MetricFamilySpec, labels: Mapping[str, str]) -> None:
    """Raise ValueError for labels that Prometheus does not take."""
    for name in labels:
        if not _LABEL_NAME.fullmatch(name) or name.startswith("__"):
            raise ValueError(
                f"'{name}' cannot be a label of metric family '{family.name}': it must match "
                f"{_LABEL_NAME.pattern} and not begin with __"
            )
        if name == "le" and family.kind == "histogram":
            raise ValueError(f"label 'le' of metric family '{family.name}' is the histogram's own")


class LoadModel(msgspec.Struct, frozen=True, tag=True):
    """Load or reload a model, as the repository API does."""

    name: str
    config: str | None
    files: dict[str, bytes]


class UnloadModel(msgspec.Struct, frozen=True, tag=True):
    """Unload a model, as the repository API does."""

    name: str
    unload_dependents: bool


class IsModelReady(msgspec.Struct, frozen=True, tag=True):
    """Ask whether a model (version "" = any) can answer. Answered by a bool."""

    name: str
    version: str


class Log(msgspec.Struct, frozen=True, tag=True):
    """A line in the server's log; level is error, warning, info or verbose."""

    level: str
    message: str


class ActOnMetric(msgspec.Struct, frozen=True, tag=True):
    """Act on a custom metric: create, increment, set, observe, value or remove. Answered by its value.

    Without labels: declare or drop its family.
    """

    family: MetricFamilySpec
    labels: dict[str, str]
    action: str
    value: float


class ReservedMemory(msgspec.Struct, frozen=True, tag=True):
    """Bytes that the frameworks of a model's process have reserved on GPUs, by the server's ordinals."""

    gpus: dict[int, int]


class Infer:
    """Run another model of this server. Answered by its responses, in order, the model's errors on them.

    Without `decoupled` the model must be one that answers once.
    """

    __slots__ = ("decoupled", "request")

    def __init__(self, request: InferRequest, decoupled: bool) -> None:
        self.request = request
        self.decoupled = decoupled


ServerCall = LoadModel | UnloadModel | IsModelReady | Log | ActOnMetric | EngineState | ReservedMemory
Answer = InferResponse | bool | float | None


class Call(Protocol):
    """A model's request to its server: an iterator over the answers. Safe from any thread."""

    def __iter__(self) -> "Call": ...

    def __next__(self) -> Answer:
        """Wait for the next answer. Raises ServingError where the server refuses the call."""

    def cancel(self) -> None:
        """Drop further answers; an inference is cancelled as if its client had gone."""

    def when_ready(self, notify: Callable[[], None]) -> None:
        """Call `notify` once, as soon as `next` would not wait: at once, or later from any thread."""


class Host(Protocol):
    """The services of the server for a running model (Triton's business logic scripting)."""

    def call(self, what: Infer | ServerCall) -> Call:
        """Begin a call. Does not wait."""

    def log(self, level: str, message: str) -> None:
        """Write a line to the server's log; level is error, warning, info or verbose. Nothing is answered."""

    def report(self, state: EngineState) -> None:
        """Report the state of a backend that batches by itself, for the metrics. Nothing is answered."""

    def lost(self, error: ServingError) -> None:
        """Fail this instance, from any thread.

        Its open requests are answered with the error, and another one replaces it.

        In a process of its own that process ends, and this does not return.
        """

    def corked(self) -> AbstractContextManager[None]:
        """Return a context whose responses leave together at its end, in one write. It must not wait for anything."""


class ModelInstance(Protocol):
    """One loaded instance of a model."""

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes | None:
        """Work on a batch. When it returns, the instance takes the next one.

        Times mean that every request has its last response. A backend that answers later (decoupled, continuous
        batching) returns None at once and goes on sending. An exception fails every request of the batch that
        has no final response yet.
        """

    def close(self) -> None:
        """Release everything. Called once; no execute follows."""


@runtime_checkable
class ManagedInstance(ModelInstance, Protocol):
    """An instance that the server can put to sleep, or give adapters, while it is loaded."""

    def manage(self, command: Command) -> None:
        """Carry out a command, and return when it is done. Raises ServingError.

        Called on a thread of its own, one command after the other, while `execute` takes requests.
        """


@runtime_checkable
class CheckedInstance(ModelInstance, Protocol):
    """An instance whose model can say itself whether it is ready; `checks_readiness` tells whether it does."""

    @property
    def checks_readiness(self) -> bool:
        """Whether `is_ready` asks the model."""

    def is_ready(self) -> bool:
        """Return what the model says. Raises ServingError where it fails.

        Called on a thread of its own, while `execute` takes requests.
        """


__all__ = [
    "ActOnMetric",
    "Answer",
    "Call",
    "CheckedInstance",
    "EngineState",
    "ExecutionTimes",
    "Host",
    "Infer",
    "InstanceSpec",
    "IsModelReady",
    "Isolation",
    "LoadModel",
    "Log",
    "ManagedInstance",
    "MetricFamilySpec",
    "ModelInstance",
    "ReservedMemory",
    "Responder",
    "ServerCall",
    "ServingError",
    "UnloadModel",
    "check_labels",
]

"""The values between the operator and a build: the requested engine, and the build's report. Pure.

A build is named by all of its request (`BuildRequest.name`), its engine by what decides the engine's files
(`engine_key`): two builds that request one engine, be it with other accuracy to show, share it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

FINAL_EXIT_CODE = 78
"""What a builder exits with when trying again would change nothing (sysexits.h: EX_CONFIG). After any other that
is not 0 its Job starts it again, and it goes on behind the last phase that was finished."""


class BuildState(StrEnum):
    """Where a build is. READY and FAILED are final."""

    PENDING = "Pending"
    BUILDING = "Building"
    VERIFYING = "Verifying"
    READY = "Ready"
    FAILED = "Failed"


class BuildFailure(StrEnum):
    """Why a build failed: a word that a condition's message begins with, and that people can look up."""

    INVALID_OPTIONS = "InvalidOptions"
    MODEL_UNAVAILABLE = "ModelUnavailable"
    MODEL_INVALID = "ModelInvalid"
    UNSUPPORTED_MODEL = "UnsupportedModel"
    CALIBRATION_MISSING = "CalibrationMissing"
    CALIBRATION_INVALID = "CalibrationInvalid"
    BUILDER_MISSING = "BuilderMissing"
    OUT_OF_MEMORY = "OutOfMemory"
    OUT_OF_GPU_MEMORY = "OutOfGpuMemory"
    DISK_FULL = "DiskFull"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    CRASHED = "Crashed"
    IMAGE_UNAVAILABLE = "ImageUnavailable"
    ENGINE_DIFFERS = "EngineDiffers"
    ACCURACY_DATA_INVALID = "AccuracyDataInvalid"
    ACCURACY_TOO_LOW = "AccuracyTooLow"
    STORE_UNAVAILABLE = "StoreUnavailable"
    STORE_FULL = "StoreFull"
    BUILD_FAILED = "BuildFailed"


@dataclass(frozen=True, slots=True)
class DataSource:
    """Files of data, or a script; `secret` is the Secret with the credentials for them; empty: the pool's. Without a
    `uri` there are none."""

    uri: str = ""
    digest: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor of the model: `data_type` as `TYPE_FP32`, `dims` without the batch, -1 where any size goes."""

    name: str
    data_type: str
    dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gate:
    """What the engine must show before it is published.

    `metric` is empty where a `script` gives the number. `samples` 0 means all of the data.
    """

    data: DataSource
    metric: str = ""
    script: DataSource = DataSource()
    minimum: float | None = None
    maximum: float | None = None
    baseline_precision: str = ""
    samples: int = 0


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One engine for one architecture.

    `architecture`: a GPU's compute capability, such as `9.0`, or a CPU's name, such as `amd64`. `compiler`: the image,
    which identifies the compiler before it runs. `store`: the URI of the engine cache. `filename`: the name of the
    model's file if it has only one. `precision`: empty for that of the files. One replica runs on `tensor` times
    `pipeline` GPUs. `batch_sizes`: those to optimize for, in addition to `max_batch_size`. `skip`: the reason why a
    required comparison is left out.
    """

    builder: str
    architecture: str
    compiler: str
    store: str
    model: DataSource
    filename: str = ""
    precision: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    max_batch_size: int = 0
    batch_sizes: tuple[int, ...] = ()
    tensor: int = 1
    pipeline: int = 1
    calibration: DataSource = DataSource()
    calibration_samples: int = 0
    gate: Gate | None = None
    skip: str = ""

    @property
    def name(self) -> str:
        """Twenty hexadecimal digits, the same for equal requests whatever order their mappings have."""
        return digest_of(asdict(self))[:20]

    @property
    def gpus(self) -> int:
        """GPUs that the build takes; 0 for a CPU's architecture."""
        return self.tensor * self.pipeline if self.architecture[:1].isdigit() else 0


@dataclass(frozen=True, slots=True)
class AccuracyReport:
    """What the gate measured, of baseline and engine, over `samples` samples of the data with this digest.

    `value` is what is held against the bounds: the metric's own number, or the script's. `baseline` and `engine` are
    both sides' figures where the metric has one for each (perplexity, a task's score), and `delta` their difference.
    `at` is RFC 3339.
    """

    metric: str
    value: float
    passed: bool
    samples: int
    data_digest: str
    at: str
    baseline: float | None = None
    engine: float | None = None
    delta: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    details: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A transformer's sizes from its `config.json`; 0 if the model has no such part.

    `parameters`: the number of weights; `embedding_parameters`: those in the embeddings and the output layer, which
    stay at 16 bits when the others are quantized; `weight_bytes`: the size of the engine's weights. 0 if unknown.
    """

    layers: int
    hidden_size: int
    attention_heads: int
    key_value_heads: int
    head_size: int
    intermediate_size: int = 0
    vocabulary: int = 0
    experts: int = 0
    experts_per_token: int = 0
    max_positions: int = 0
    parameters: int = 0
    embedding_parameters: int = 0
    weight_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build says of itself.

    `pod` is the UID of the Pod that says it. `phase` is what it does now, `percent` of the whole, `line` the tool's
    last words. READY has `key`, `uri` (where servers get the engine), `digest`, `size` in bytes; `cached`: the engine
    was there already. `seconds` is how long it took. FAILED has `failure` and a `message` that a person can act on.
    """

    state: BuildState
    pod: str = ""
    phase: str = ""
    percent: int = 0
    line: str = ""
    key: str = ""
    uri: str = ""
    digest: str = ""
    size: int = 0
    cached: bool = False
    seconds: float = 0.0
    compiler: str = ""
    failure: BuildFailure | None = None
    message: str = ""
    accuracy: AccuracyReport | None = None
    shape: ModelShape | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing more comes."""
        return self.state in (BuildState.READY, BuildState.FAILED)


def engine_key(request: BuildRequest, model: str, calibration: str, compiler: str) -> str:
    """Return the engine's key: thirty-two hexadecimal digits of all that decides its files, and of nothing else.

    `model` and `calibration` are the digests of the files that came, `compiler` the name and version of what compiles.
    """
    decides = {
        "model": model,
        "builder": request.builder,
        "precision": request.precision,
        "options": request.options,
        "inputs": [asdict(tensor) for tensor in request.inputs],
        "outputs": [asdict(tensor) for tensor in request.outputs],
        "batch": [request.max_batch_size, *sorted(set(request.batch_sizes))],
        "parallelism": [request.tensor, request.pipeline],
        "calibration": [calibration, request.calibration_samples if calibration else 0],
        "architecture": request.architecture,
        "compiler": compiler,
    }
    return digest_of(decides)[:32]


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a JSON value, whatever order its objects have."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

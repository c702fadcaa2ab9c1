"""InferenceModel: a model to serve, declared."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field

from argosy.api.base import ApiModel, Fault, Int, Rule
from argosy.api.batching import Batching
from argosy.api.configfields import check_config
from argosy.api.engine import Engine
from argosy.api.footprint import Footprint, Parallelism
from argosy.api.meta import PoolMember, PoolReference
from argosy.api.modelformat import ModelFormat
from argosy.api.rollout import Rollout
from argosy.api.scale import replicas_in_order
from argosy.api.sequence import Sequence
from argosy.api.slo import Slo
from argosy.api.status import InferenceModelStatus
from argosy.api.storage import Digest, StorageUri
from argosy.api.tensors import MAX_TENSORS, InputTensor, OutputTensor, unique_names
from argosy.api.versions import Version, VersionPolicy


def _served_version(spec: "InferenceModelSpec") -> Iterator[Fault]:
    policy = spec.version_policy
    if policy and policy.specific and spec.version not in policy.specific.versions:
        yield Fault(
            f"does not list spec.version {spec.version}, which would not be served; add it",
            ("versionPolicy", "specific", "versions"),
        )


def _one_scheduler(spec: "InferenceModelSpec") -> Iterator[Fault]:
    if spec.batching is not None and spec.sequence is not None:
        yield Fault("batching and sequence exclude each other: a model has one scheduler; keep one", ("sequence",))


def _preferred_sizes(spec: "InferenceModelSpec") -> Iterator[Fault]:
    places: list[tuple[tuple[str, ...], tuple[int, ...]]] = []
    if spec.batching is not None:
        places.append((("batching",), spec.batching.preferred_batch_sizes))
    if spec.sequence is not None and spec.sequence.oldest is not None:
        places.append((("sequence", "oldest"), spec.sequence.oldest.preferred_batch_sizes))
    for path, sizes in places:
        for index, size in enumerate(sizes):
            if size > spec.max_batch_size:
                yield Fault(
                    f"is {size}, more than maxBatchSize {spec.max_batch_size}; lower it or raise maxBatchSize",
                    (*path, "preferredBatchSizes", index),
                )


def _scalars_need_a_batch(spec: "InferenceModelSpec") -> Iterator[Fault]:
    if spec.max_batch_size:
        return
    for field, tensors in (("inputs", spec.inputs), ("outputs", spec.outputs)):
        for index, tensor in enumerate(tensors):
            if tensor.reshape is not None and not tensor.reshape.shape:
                yield Fault(
                    "an empty shape needs the batch dimension; set maxBatchSize to 1 or more",
                    (field, index, "reshape", "shape"),
                )


def _ragged_needs_a_batch(spec: "InferenceModelSpec") -> Iterator[Fault]:
    if spec.max_batch_size:
        return
    for index, tensor in enumerate(spec.inputs):
        if tensor.allow_ragged_batch:
            yield Fault(
                "there is no batch to be ragged while maxBatchSize is 0; set it, or leave this out",
                ("inputs", index, "allowRaggedBatch"),
            )


def _gpus_agree(spec: "InferenceModelSpec") -> Iterator[Fault]:
    needed, given = spec.parallelism.gpus, spec.footprint.gpus
    if given and spec.parallelism != Parallelism() and given != needed:
        yield Fault(
            f"is {given}, but parallelism.tensor {spec.parallelism.tensor} x pipeline "
            f"{spec.parallelism.pipeline} "
            f"takes {needed}; make them agree or leave out gpus",
            ("footprint", "gpus"),
        )
    if needed > 1 and not given and spec.footprint.compute:
        yield Fault(
            f"parallelism takes {needed} whole GPUs, so a share of compute means nothing; leave it out",
            ("footprint", "compute"),
        )


def _instances_on_whole_gpus(spec: "InferenceModelSpec") -> Iterator[Fault]:
    if spec.instances > 1 and spec.gpus > 1:
        yield Fault(
            f"is {spec.instances}, but one instance takes all {spec.gpus} GPUs; use minReplicas for more copies",
            ("instances",),
        )


def _shape_tensors_need_tensorrt(spec: "InferenceModelSpec") -> Iterator[Fault]:
    if spec.backend == "tensorrt":
        return
    for field, tensors in (("inputs", spec.inputs), ("outputs", spec.outputs)):
        for index, tensor in enumerate(tensors):
            if tensor.is_shape_tensor:
                yield Fault(
                    f"only TensorRT has shape tensors, and backend {spec.backend} runs this; leave it out",
                    (field, index, "isShapeTensor"),
                )


def _builder_reads_format(spec: "InferenceModelSpec") -> Iterator[Fault]:
    if spec.engine is not None and spec.engine.builder.reads != spec.model_format.name:
        yield Fault(
            f"{spec.engine.builder} compiles models of format {spec.engine.builder.reads!r}, "
            f"and modelFormat.name is {spec.model_format.name!r}; change one of them",
            ("engine", "builder"),
        )


def _config_fields(spec: "InferenceModelSpec") -> Iterator[Fault]:
    for fault in check_config(spec.config):
        yield Fault(fault.message, ("config", *fault.path))


class InferenceModelSpec(ApiModel):
    """What is asked for."""

    pool_ref: PoolReference = Field(description="The ServingPool that serves it, in the same namespace.")
    model_format: ModelFormat = Field(description="What the model is made of; it decides the backend.")
    version: Version = Field(description="The version to serve, 1 or more. Raise it to roll out new files.")
    storage_uri: StorageUri = Field(
        description="Where the version's files are: s3, gs, hf, oci, pvc, http, https or file. A "
        "path after `file:` may be "
        "relative to the manifest."
    )
    digest: Digest | None = Field(
        default=None,
        description="The files' digest, `sha256:` and 64 hexadecimal digits, checked on arrival. Default: not checked.",
    )
    version_policy: VersionPolicy | None = Field(
        default=None,
        description="Which versions are served. Default: the latest one; during a rollout also the one before.",
    )
    inputs: tuple[InputTensor, ...] = Field(
        default=(),
        max_length=MAX_TENSORS,
        description="The tensors a request brings. Default: what the model's files say.",
    )
    outputs: tuple[OutputTensor, ...] = Field(
        default=(),
        max_length=MAX_TENSORS,
        description="The tensors a response brings. Default: what the model's files say.",
    )
    max_batch_size: Int = Field(
        default=0,
        ge=0,
        le=2**31 - 1,
        description="The largest batch. Default: 0, tensors have no batch dimension.",
    )
    batching: Batching | None = Field(
        default=None, description="Joins requests into batches. Default: they run one by one."
    )
    sequence: Sequence | None = Field(
        default=None, description="Keeps related requests together. Default: they are unrelated."
    )
    footprint: Footprint = Field(default_factory=Footprint, description="What one instance takes. Default: no GPU.")
    parallelism: Parallelism = Field(
        default_factory=Parallelism, description="How one copy is split over whole GPUs. Default: not at all."
    )
    instances: Int = Field(
        default=1,
        ge=1,
        le=256,
        description="Copies that run at once on each device of a replica. Default: 1.",
    )
    min_replicas: Int = Field(default=1, ge=0, le=10000, description="The fewest servers that hold it. Default: 1.")
    max_replicas: Int | None = Field(
        default=None,
        ge=1,
        le=10000,
        description="The most servers that hold it. Default: minReplicas, no scaling.",
    )
    slo: Slo | None = Field(
        default=None,
        description="What it should achieve; replicas follow. Default: replicas stay at the minimum.",
    )
    engine: Engine | None = Field(
        default=None, description="An engine to build from it first. Default: it is served as it is."
    )
    rollout: Rollout | None = Field(
        default=None,
        description="How a new version takes over. Default: it gets all traffic once it is loaded.",
    )
    config: dict[str, Any] = Field(
        default_factory=dict,
        description="Any other field of Triton's ModelConfig, in its own snake_case, checked against its schema.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("version", "version_policy"),
            _served_version,
            cel="!has(self.versionPolicy) || !has(self.versionPolicy.specific) || self.version in "
            "self.versionPolicy.specific.versions",
            says="versionPolicy.specific.versions must list spec.version",
        ),
        Rule(
            ("batching", "sequence"),
            _one_scheduler,
            cel="!(has(self.batching) && has(self.sequence))",
            says="batching and sequence exclude each other; keep one",
        ),
        Rule(
            ("batching", "sequence", "max_batch_size"),
            _preferred_sizes,
            cel="!has(self.batching) || !has(self.batching.preferredBatchSizes) || "
            "self.batching.preferredBatchSizes.all(size, size <= self.maxBatchSize)",
            says="a preferred batch size is at most maxBatchSize",
        ),
        Rule(("inputs", "outputs", "max_batch_size"), _scalars_need_a_batch),
        Rule(("inputs", "max_batch_size"), _ragged_needs_a_batch),
        Rule(
            ("footprint", "parallelism"),
            _gpus_agree,
            cel="!has(self.footprint) || !has(self.parallelism) || self.footprint.gpus == 0 || "
            "self.parallelism.tensor * self.parallelism.pipeline == 1 || "
            "self.footprint.gpus == self.parallelism.tensor * self.parallelism.pipeline",
            says="footprint.gpus must be parallelism.tensor x parallelism.pipeline",
        ),
        Rule(
            ("footprint", "parallelism", "instances"),
            _instances_on_whole_gpus,
            cel="self.instances == 1 || !has(self.footprint) || self.footprint.gpus <= 1",
            says="a model that takes several GPUs has one instance on them",
        ),
        replicas_in_order("min_replicas", "max_replicas"),
        unique_names("inputs", "inputs"),
        unique_names("outputs", "outputs"),
        Rule(("inputs", "outputs", "model_format", "engine"), _shape_tensors_need_tensorrt),
        Rule(("model_format", "engine"), _builder_reads_format),
        Rule(("config",), _config_fields),
    )

    @property
    def backend(self) -> str:
        """The backend that runs it, as `config.pbtxt` writes it: the engine's, or else the format's."""
        return self.engine.builder.backend if self.engine else self.model_format.backend

    @property
    def gpus(self) -> int:
        """Whole GPUs that one copy takes; 0 when it takes a share, or none."""
        return self.footprint.gpus or (self.parallelism.gpus if self.parallelism.gpus > 1 else 0)

    @property
    def most_replicas(self) -> int:
        """`maxReplicas`, or `minReplicas` where it is not set."""
        return self.min_replicas if self.max_replicas is None else self.max_replicas


class InferenceModel(PoolMember):
    """A model to serve: what it is, what it needs and how it rolls out. In full: inferencemodels.argosy.dev."""

    api_version: Literal["argosy.dev/v1alpha1"] = Field(
        default="argosy.dev/v1alpha1", description="The API's group and version."
    )
    kind: Literal["InferenceModel"] = Field(default="InferenceModel", description="InferenceModel.")
    spec: InferenceModelSpec = Field(description="What is asked for. The operator never writes here.")
    status: InferenceModelStatus | None = Field(default=None, description="What is so; written by the operator.")

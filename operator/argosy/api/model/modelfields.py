"""The fields of an InferenceModel's spec, and what follows from them."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from argosy.api.engine.engine import Engine
from argosy.api.model.adapters import Adapters
from argosy.api.model.batching.dynamic import Batching
from argosy.api.model.batching.sequence import Sequence
from argosy.api.model.chat import Chat
from argosy.api.model.configfields import ConfigFields
from argosy.api.model.footprint import Device, Footprint, Parallelism, Traffic
from argosy.api.model.instancegroups import GroupKind, InstanceGroup, RateLimiter, on_cpu
from argosy.api.model.modelformat import TREES, ModelFormat
from argosy.api.model.placement import Affinity, AntiAffinity, NodeSelector, TopologySpread
from argosy.api.model.rollout.rollout import MemberRollout
from argosy.api.model.scaling.scale import MaxReplicas, MinReplicas, Priority, Replicas, fewest_of, most_of
from argosy.api.model.scaling.scaling import ModelScaling
from argosy.api.model.scaling.slo import Slo
from argosy.api.model.variants import Routing, Variants
from argosy.api.values.base import ApiModel, Int
from argosy.api.values.meta import ModelName, PoolReference, RevisionHistoryLimit
from argosy.api.values.storage import Digest, ModelStorage, StorageUri
from argosy.api.values.tensors import BY_NAME, MAX_TENSORS, InputTensor, OutputTensor
from argosy.api.values.versions import Version, VersionPolicy

BATCH_FROM_FILES = frozenset({"onnxruntime", "tensorrt", "python"})
"""Backends that complete an absent maxBatchSize from the model's files."""
ON_CPU_BY_DEFAULT = frozenset({"python", TREES})
"""Backends whose models need no GPU unless they ask for one."""
BY_VERSION: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["version"]}
"""The schema's words for a list whose entries are told apart by their versions."""
MAX_VERSIONS = 64


class VersionFiles(ApiModel):
    """A version and its files."""

    version: Version = Field(description="The version, 1 or more.")
    storage_uri: StorageUri = Field(description="Where its files are, as in spec.storageUri.")
    digest: Digest | None = Field(default=None, description="Its files' digest. Default: not checked.")


class InferenceModelFields(ApiModel):
    """The fields of a model's spec, without its rules."""

    pool_ref: PoolReference = Field(description="The ServingPool that serves it, in the same namespace.")
    model_name: ModelName | None = Field(
        default=None,
        description="Its name for clients, such as Bert_v2.1, unique in the pool. Default: metadata.name.",
    )
    model_format: ModelFormat = Field(description="The format of the model, which selects the backend.")
    version: Version | None = Field(
        default=None,
        description="The version to serve, 1 or more. Raise it to roll out new files. Required, unless versions lists "
        "several.",
    )
    storage_uri: StorageUri | None = Field(
        default=None,
        description="The URI of the version's files: s3, gs, az, abfss, hf, oci, pvc, http, https or file. A path "
        "after `file:` may be relative to the manifest. Required, unless versions lists several.",
    )
    digest: Digest | None = Field(
        default=None,
        description="The files' digest, `sha256:` and 64 hexadecimal digits, checked on arrival. Default: not checked.",
    )
    versions: tuple[VersionFiles, ...] = Field(
        default=(),
        max_length=MAX_VERSIONS,
        description="Several versions that are served at once, in place of version, storageUri and digest. The highest "
        "one answers requests that name no version.",
        json_schema_extra=BY_VERSION,
    )
    storage: ModelStorage = Field(
        default_factory=ModelStorage, description="Credentials for the files. Default: those of the pool."
    )
    version_policy: VersionPolicy | None = Field(
        default=None,
        description="Which versions are served. Default: the latest one; during a rollout also the one before. "
        "Versions above the declared ones are not retained, since they would answer requests that "
        "name no version.",
    )
    inputs: tuple[InputTensor, ...] = Field(
        default=(),
        max_length=MAX_TENSORS,
        description="The tensors of a request. Default: those in the model's files.",
        json_schema_extra=BY_NAME,
    )
    outputs: tuple[OutputTensor, ...] = Field(
        default=(),
        max_length=MAX_TENSORS,
        description="The tensors of a response. Default: those in the model's files.",
        json_schema_extra=BY_NAME,
    )
    max_batch_size: Int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="The largest batch; 0 if tensors have no batch dimension. Default: the value that the backend "
        "reads in the model's files, or 0 if they have none.",
    )
    batching: Batching | None = Field(
        default=None, description="How requests are joined into batches. Default: they are executed one by one."
    )
    sequence: Sequence | None = Field(
        default=None, description="How related requests are kept together. Default: requests are unrelated."
    )
    chat: Chat | None = Field(
        default=None,
        description="The tensors of a chat, which make it a chat model of the bundled server's OpenAI API. Default: "
        "language models with Argosy's own tensors are chat models, others are none.",
    )
    footprint: Footprint | None = Field(
        default=None,
        description="What one instance uses. Default: unknown; in a pool with GPUs it then gets a GPU of its own, "
        "or the CPU if the format is python.",
    )
    parallelism: Parallelism = Field(
        default_factory=Parallelism, description="How one replica is split over whole GPUs. Default: it is not split."
    )
    node_selector: NodeSelector = Field(default_factory=dict)
    topology_spread: TopologySpread = ()
    affinity: Affinity = ()
    anti_affinity: AntiAffinity = ()
    traffic: Traffic | None = Field(
        default=None,
        description="The mean request of a language model; the status advises on parallelism that does not suit it. "
        "Default: unknown.",
    )
    instances: Int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="Instances of a replica that run at once: on one GPU or the CPU; where no GPU has memory for all, "
        "divided evenly among GPUs of one server. Default: with slo or scaling Argosy decides, within scaling's "
        "bounds; a step of an ensemble has two where there is room for them; else one.",
    )
    instance_groups: tuple[InstanceGroup, ...] = Field(
        default=(),
        max_length=32,
        description="Groups of instances, in place of instances. Default: one group.",
    )
    rate_limiter: RateLimiter | None = Field(
        default=None, description="Limits which instances run at once on a server. Default: no limit."
    )
    replicas: Replicas = None
    min_replicas: MinReplicas = None
    max_replicas: MaxReplicas = None
    slo: Slo | None = Field(
        default=None,
        description="Service level objectives, for which Argosy scales replicas, instances and the batching window. "
        "Default: none.",
    )
    scaling: ModelScaling | None = Field(
        default=None,
        description="How replicas and instances are scaled. Default: with slo or maxReplicas, by the defaults of its "
        "fields; else only replicas, if minReplicas is 0.",
    )
    priority: Priority = 0
    engine: Engine | None = Field(
        default=None,
        description="An engine to build from the model before it serves. Default: none; the model is served as it is.",
    )
    adapters: Adapters = ()
    variants: Variants = ()
    routing: Routing = Field(
        default_factory=Routing,
        description="How requests are divided among variants. Default: by the defaults of its fields.",
    )
    rollout: MemberRollout = None
    config: ConfigFields = Field(default_factory=dict)
    revision_history_limit: RevisionHistoryLimit = 10

    @property
    def declared(self) -> Mapping[int, VersionFiles]:
        """Every declared version and its files, lowest first."""
        if self.versions:
            return {files.version: files for files in sorted(self.versions, key=lambda files: files.version)}
        if self.version is None or self.storage_uri is None:
            return {}
        files = VersionFiles.model_construct(version=self.version, storage_uri=self.storage_uri, digest=self.digest)
        return {self.version: files}

    @property
    def declared_versions(self) -> tuple[int, ...]:
        """Every declared version, lowest first."""
        if self.versions:
            return tuple(sorted(files.version for files in self.versions))
        return () if self.version is None else (self.version,)

    @property
    def default_version(self) -> int:
        """The version that answers requests that name none: the highest declared one."""
        return self.declared_versions[-1]

    @property
    def backend(self) -> str:
        """The backend, by its name in `config.pbtxt`: that of the engine, or else of the format."""
        return self.engine.builder.backend if self.engine else self.model_format.backend

    @property
    def gpus(self) -> int:
        """The exclusive GPUs of one replica; 0 if it takes a share, none, or if that is not declared."""
        gpus = self.footprint.gpus if self.footprint else None
        return gpus or (self.parallelism.gpus if self.parallelism.gpus > 1 else 0)

    @property
    def device(self) -> Device:
        """The device that runs it in a pool with both kinds."""
        footprint = self.footprint or Footprint()
        if footprint.device is not None:
            return footprint.device
        if on_cpu(self.instance_groups):
            return Device.CPU
        on_gpu = any(group.kind in (GroupKind.GPU, GroupKind.MODEL) for group in self.instance_groups)
        if on_gpu or self.gpus or footprint.gpu_memory is not None or self.backend not in ON_CPU_BY_DEFAULT:
            return Device.GPU
        return Device.CPU

    @property
    def rate_limited(self) -> bool:
        """Whether instances wait for resources of the rate limiter."""
        return self.rate_limiter is not None or any(group.rate_limiter for group in self.instance_groups)

    @property
    def batch_size(self) -> int | None:
        """The largest batch; 0 without a batch dimension; None if only the model's files have it."""
        unknown = self.max_batch_size is None and self.backend in BATCH_FROM_FILES
        return None if unknown else self.max_batch_size or 0

    @property
    def fewest_replicas(self) -> int:
        """`replicas` if it is set, else `minReplicas`."""
        return fewest_of(self.replicas, self.least_replicas)

    @property
    def least_replicas(self) -> int:
        """`minReplicas`; 1 if it is not set."""
        return 1 if self.min_replicas is None else self.min_replicas

    @property
    def most_replicas(self) -> int:
        """`replicas` or else `maxReplicas`; if neither is set, `minReplicas`, and at least 1."""
        return most_of(self.replicas, self.least_replicas, self.max_replicas)

"""What the operator reports on each resource. It alone writes here."""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from argosy.api.conditions import AnyReason, Condition, ConditionStatus, ConditionType, camel_case
from argosy.api.values.base import FrozenModel, Int, Number
from argosy.api.values.quantity import MeasuredShare, Quantity


class StatusPart(FrozenModel):
    """A part of a status. Fields that another release wrote are passed over."""

    model_config = ConfigDict(extra="ignore")


class VersionState(StrEnum):
    """Where a version is between its files and its traffic."""

    PENDING = "Pending"
    BUILDING = "Building"
    LOADING = "Loading"
    SERVING = "Serving"
    DRAINING = "Draining"
    FAILED = "Failed"


AnyVersionState = Annotated[VersionState | str, Field(union_mode="left_to_right"), camel_case(64)]
"""A state of this release, or the word of another's."""


class VersionStatus(StatusPart):
    """One version of a model."""

    version: Int = Field(ge=1, description="The version.")
    state: AnyVersionState = Field(description="Where it is between its files and its traffic.")
    traffic_percent: Int = Field(
        default=0,
        ge=0,
        le=100,
        description="On how many of the servers that requests reach it answers those that name no version, in percent.",
    )
    replicas: Int = Field(default=0, ge=0, description="Servers that are to hold it.")
    available_replicas: Int = Field(default=0, ge=0, description="Servers on which it is loaded.")
    reason: str = Field(default="", description="Why it is in that state, where that is no success.")
    digests: tuple[str, ...] = Field(
        default=(),
        description="The files that servers answer from: their digest where it is declared or the storage gives it, "
        "else listing: and a digest of their names, sizes and ETags. More than one where servers fetched different "
        "files: the first ten.",
    )


class PlacementStatus(StatusPart):
    """One replica's place."""

    server: str = Field(description="The server.")
    node: str = Field(default="", description="The server's node.")
    version: Int = Field(default=1, ge=1, description="The version that is placed.")
    gpus: tuple[Int, ...] = Field(
        default=(),
        description="GPUs it is planned on, by their index on the node; empty on the CPU. In a cluster only their "
        "number is asked for, and the node's device plugin chooses them.",
    )
    instances: Int = Field(default=1, ge=1, description="Copies on each of those devices.")


class FootprintStatus(StatusPart):
    """What one instance takes, as it is declared, or as the model's shape tells; nothing of it is measured."""

    gpu_memory: Quantity | None = Field(default=None, description="Memory on each GPU.")
    compute: MeasuredShare | None = Field(default=None, description="The share of one GPU's compute.")
    gpus: Int = Field(default=0, ge=0, description="Whole GPUs.")


class AccuracyStatus(StatusPart):
    """What the accuracy gate measured of an engine and its baseline."""

    metric: str = Field(description="How they were compared: a metric, or script.")
    value: Number = Field(description="What is held against the bounds.")
    passed: bool = Field(description="Whether it is good enough.")
    minimum: Number | None = Field(default=None, description="The least that is good enough.")
    maximum: Number | None = Field(default=None, description="The most that is good enough.")
    baseline: Number | None = Field(default=None, description="The baseline's own figure, where the metric has one.")
    engine: Number | None = Field(default=None, description="The engine's own figure, where the metric has one.")
    delta: Number | None = Field(default=None, description="The difference of the two figures.")
    samples: Int = Field(default=0, ge=0, description="Samples that were compared.")
    data_digest: str = Field(default="", description="The digest of the data.")
    time: str = Field(default="", description="When it was measured, RFC 3339.")


class EngineStatus(StatusPart):
    """An engine of one version for one architecture, and its build."""

    version: Int = Field(default=1, ge=1, description="The model's version.")
    architecture: str = Field(description='The GPU\'s compute capability, as "9.0", or the CPU\'s name, as "amd64".')
    state: str = Field(description="Pending, Building, Verifying, Ready or Failed.")
    serving: bool = Field(default=False, description="Whether servers load what storageUri names.")
    build: str = Field(default="", description="The build: the value of its objects' label argosy.dev/build.")
    phase: str = Field(default="", description="What the build does now.")
    percent: Int = Field(default=0, ge=0, le=100, description="How much of the whole build is done.")
    last_line: str = Field(default="", description="The last words of the tool that compiles.")
    message: str = Field(default="", description="Why it waits or failed, and what to do.")
    storage_uri: str = Field(
        default="", description="Where servers get it; until it is ready, the former one for the same request."
    )
    digest: str = Field(default="", description="The digest of the files there.")
    size: Int = Field(default=0, ge=0, description="Bytes of its files.")
    cached: bool = Field(default=False, description="Whether it was there already, and nothing was built.")
    build_seconds: Number = Field(default=0, description="How long the build took.")
    compiler: str = Field(default="", description="The name and version of what compiled it.")
    key: str = Field(
        default="", description="What it is kept under: model digest, options, calibration, architecture, compiler."
    )
    request_digest: str = Field(
        default="", description="What was asked for, whatever image builds it and wherever it is kept."
    )
    accuracy: AccuracyStatus | None = Field(default=None, description="What the accuracy gate measured.")
    accuracy_skipped: str = Field(
        default="", description="Why nothing was compared, as spec.engine.accuracy.skip says."
    )


class ScalingChange(StatusPart):
    """A change of replicas, instances or the batching of a model or an ensemble."""

    time: str = Field(description="When, RFC 3339.")
    replicas: Int = Field(default=0, ge=0, description="Replicas after it.")
    instances: Int = Field(default=1, ge=0, description="Instances on each device after it.")
    former_replicas: Int = Field(default=0, ge=0, description="Replicas before it.")
    former_instances: Int = Field(default=1, ge=0, description="Instances on each device before it.")
    reason: AnyReason = Field(description="Why, in one CamelCase word.")
    message: str = Field(default="", description="Why, with the numbers.")


class OutOfMemoryStatus(StatusPart):
    """That batches or instances are smaller since memory ran out. With another version or footprint, or on GPUs with
    more memory, all is tried anew.
    """

    time: str = Field(description="When they last became smaller, RFC 3339.")
    message: str = Field(default="", description="What became smaller and why, with the numbers.")
    versions: tuple[Int, ...] = Field(default=(), description="The versions that memory was short for.")
    footprint: str = Field(default="", description="The footprint then, such as gpuMemory 4Gi.")
    gpu_memory: Quantity | None = Field(default=None, description="Memory of the smallest GPU that it sat on.")
    max_instances: Int | None = Field(
        default=None, ge=1, description="The most instances on each device since; none: as many as ever."
    )


class ScalingStatus(StatusPart):
    """How many replicas and instances there are to be, what was measured, and why that is so."""

    replicas: Int = Field(default=0, ge=0, description="Replicas there are to be.")
    instances: Int = Field(default=1, ge=0, description="Instances on each device of a replica there are to be.")
    desired: Int = Field(
        default=0, ge=0, description="Replicas that the load asks for, be there room and leave for them or not."
    )
    max_queue_delay_microseconds: Int | None = Field(
        default=None, ge=0, description="How long a batch waits for more, where Argosy decides that."
    )
    max_batch_size: Int | None = Field(
        default=None, ge=0, description="The most rows of a batch, where there is no memory for those of the spec."
    )
    metric: str = Field(default="", description="What decided, such as latency p99 or busy.")
    observed: Number | None = Field(default=None, description="What it was; durations are in seconds.")
    target: Number | None = Field(default=None, description="What it should be at most.")
    reason: str = Field(default="", description="Why that many, in one CamelCase word.")
    message: str = Field(default="", description="Why, in one sentence with the numbers.")
    limited_by: str = Field(
        default="",
        description="What keeps replicas from desired: a field, such as spec.maxReplicas; what the next one lacks, in "
        "words; signals, where nothing new was measured.",
    )
    learnt: str = Field(default="", description="How long executions take, as was learnt from measurements, in words.")
    out_of_memory: OutOfMemoryStatus | None = Field(
        default=None, description="What is smaller since memory ran out, and for what that holds."
    )
    last_scale_time: str | None = Field(default=None, description="When something of it last changed, RFC 3339.")
    history: tuple[ScalingChange, ...] = Field(default=(), description="The last ten changes, the newest first.")


class BottleneckStatus(StatusPart):
    """What holds requests up."""

    stage: str = Field(description="The model that holds requests up, by its resource's name: itself, or a step's.")
    kind: Annotated[str, camel_case(64)] = Field(description="The rule that found it, such as StarvedStage.")
    evidence: str = Field(default="", description="What was measured, with the thresholds.")
    advice: str = Field(default="", description="What to do, and whether Argosy does it by itself.")
    share: MeasuredShare | None = Field(
        default=None, description="The stage's share of an ensemble's latency, where that can be told."
    )
    since: str | None = Field(default=None, description="Since when it is so, RFC 3339.")
    measured: str | None = Field(default=None, description="When the evidence was measured, RFC 3339.")


class ResourceStatus(StatusPart):
    """What every status has."""

    observed_generation: Int = Field(
        default=0, ge=0, description="The spec's generation that this status was made for."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="What is so, and why: one condition of each type.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    replicas: Int = Field(default=0, ge=0, description="Replicas that are placed; what kubectl scale reads.")
    available_replicas: Int = Field(default=0, ge=0, description="Replicas that serve.")
    selector: str = Field(default="", description="A label selector of the Pods, for autoscalers.")
    url: str = Field(default="", description="Where requests over HTTP go.")
    grpc_address: str = Field(
        default="", description="Where gRPC clients connect, as host:port; the request names the model."
    )

    def condition(self, kind: ConditionType) -> Condition | None:
        """Return the condition of a type, if there is one."""
        return next((condition for condition in self.conditions if condition.type is kind), None)

    @property
    def ready(self) -> bool:
        """Whether the Ready condition is True."""
        condition = self.condition(ConditionType.READY)
        return condition is not None and condition.status is ConditionStatus.TRUE


class InferenceModelStatus(ResourceStatus):
    """What is so about a model."""

    versions: tuple[VersionStatus, ...] = Field(
        default=(),
        description="The versions, and their traffic.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["version"]},
    )
    active_version: Int | None = Field(default=None, description="The version that most requests reach.")
    placement: tuple[PlacementStatus, ...] = Field(
        default=(), description="Where its replicas sit: the first hundred of them."
    )
    remaining_placements: Int = Field(default=0, ge=0, description="Placed replicas that placement does not list.")
    footprint: FootprintStatus | None = Field(
        default=None, description="What one instance takes: declared, or from the model's shape."
    )
    engines: tuple[EngineStatus, ...] = Field(
        default=(), description="Its engines by version and architecture: fifty at most, those that serve first."
    )
    remaining_engines: Int = Field(default=0, ge=0, description="Engines that engines does not list.")
    scaling: ScalingStatus | None = Field(
        default=None, description="How many replicas and instances there are to be, and why."
    )
    bottleneck: BottleneckStatus | None = Field(
        default=None, description="The stage that holds requests up the longest."
    )


class StepStatus(StatusPart):
    """One step of an ensemble."""

    model: str = Field(description="The step's model.")
    version: Int = Field(ge=1, description="The version that the ensemble runs.")
    state: AnyVersionState = Field(description="Where it is between its files and its traffic.")


class EnsembleStatus(ResourceStatus):
    """What is so about an ensemble."""

    versions: tuple[VersionStatus, ...] = Field(
        default=(),
        description="The ensemble's versions, and their traffic.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["version"]},
    )
    active_version: Int | None = Field(default=None, description="The version that most requests reach.")
    steps: tuple[StepStatus, ...] = Field(
        default=(), description="The steps' models, at the versions that this version runs."
    )
    placement: tuple[PlacementStatus, ...] = Field(
        default=(), description="Where its replicas sit: the first hundred of them."
    )
    remaining_placements: Int = Field(default=0, ge=0, description="Placed replicas that placement does not list.")
    scaling: ScalingStatus | None = Field(
        default=None, description="How many replicas and instances there are to be, and why."
    )
    bottleneck: BottleneckStatus | None = Field(
        default=None, description="The step that holds requests up the longest."
    )


class GpuHolder(StatusPart):
    """Who else holds GPUs of the pool's nodes."""

    holder: str = Field(
        description="Who: Pod namespace/name, ServingPool namespace/name, a build of an engine, MIG, or a cordon."
    )
    gpus: Int = Field(default=0, ge=0, description="How many GPUs it holds.")


class GpuCount(StatusPart):
    """GPUs of the pool's nodes."""

    total: Int = Field(default=0, ge=0, description="GPUs of the selected nodes, whoever holds them.")
    used: Int = Field(default=0, ge=0, description="GPUs that servers of this pool hold.")
    free: Int = Field(default=0, ge=0, description="GPUs that nobody holds.")
    withheld: Int = Field(default=0, ge=0, description="GPUs that others hold: other Pods, other pools' servers.")
    withheld_by: tuple[GpuHolder, ...] = Field(
        default=(), description="Who holds the withheld ones: the ten with the most. What they lack is held by others."
    )
    one_per_model: Int = Field(
        default=0, ge=0, description="GPUs that the same models would hold with one or more to each."
    )


class ServerStatus(StatusPart):
    """One server."""

    name: str = Field(description="The server.")
    node: str = Field(default="", description="The node it runs on.")
    gpus: tuple[Int, ...] = Field(
        default=(),
        description="GPUs it is planned with, by their index on the node. In a cluster only their number is asked for, "
        "and the node's device plugin chooses them.",
    )
    ready: bool = Field(default=False, description="Whether it answers.")
    models: Int = Field(default=0, ge=0, description="Models it is to hold.")
    url: str = Field(default="", description="Where it answers.")


class UnplacedStatus(StatusPart):
    """A replica that fits nowhere."""

    name: str = Field(description="The model or ensemble.")
    reason: str = Field(description="Why, in one CamelCase word.")
    message: str = Field(description="Why, with the numbers, and what to do.")


class CordonedGpu(StatusPart):
    """A GPU that takes no server of any pool after repeated device errors."""

    node: str = Field(description="The node.")
    gpu: Int = Field(ge=0, description="The GPU's index on the node, as in servers.")
    time: str = Field(description="Since when, RFC 3339.")
    boot_id: str = Field(default="", description="The node's boot ID then: started again, it has no cordon.")
    models: tuple[str, ...] = Field(default=(), description="The models whose loads or executions met the errors.")
    message: str = Field(default="", description="What happened, and how to lift it.")


class ServingPoolStatus(ResourceStatus):
    """What is so about a pool."""

    servers: tuple[ServerStatus, ...] = Field(
        default=(),
        description="The servers: a hundred at most, those that do not answer first.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    remaining_servers: Int = Field(default=0, ge=0, description="Servers that servers does not list.")
    gpus: GpuCount | None = Field(default=None, description="GPUs of the pool's nodes: all, used and free.")
    unplaced: tuple[UnplacedStatus, ...] = Field(
        default=(), description="What fits nowhere, and why: the first fifty replicas."
    )
    remaining_unplaced: Int = Field(default=0, ge=0, description="Replicas without a place that are not listed.")
    cordoned_gpus: tuple[CordonedGpu, ...] = Field(
        default=(),
        description="GPUs that take no server after device errors on this pool's servers. Lifted where the node is "
        "started again or deleted, and by the pool's annotation argosy.dev/gpus-uncordoned-at (a time in RFC 3339).",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["node", "gpu"]},
    )


Status = InferenceModelStatus | EnsembleStatus | ServingPoolStatus
"""The status of a resource of any of the three kinds."""

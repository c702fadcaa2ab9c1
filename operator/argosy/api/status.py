"""Statuses of resources, which the operator writes."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from argosy.api.conditions import Condition, ConditionStatus, ConditionType, camel_case
from argosy.api.consolidationstatus import ConsolidationStatus
from argosy.api.rolloutstatus import RolloutStatus
from argosy.api.scalingstatus import BottleneckStatus, LanguageStatus, ScalingStatus
from argosy.api.statusparts import AdapterStatus, EngineStatus, PreemptionStatus, RegimeStatus, StatusPart
from argosy.api.values.base import Int
from argosy.api.values.quantity import MeasuredShare, Quantity


class VersionState(StrEnum):
    """The state of a version, from loading to serving."""

    PENDING = "Pending"
    BUILDING = "Building"
    LOADING = "Loading"
    SERVING = "Serving"
    DRAINING = "Draining"
    FAILED = "Failed"


AnyVersionState = Annotated[VersionState | str, Field(union_mode="left_to_right"), camel_case(64)]
"""A state of this release, or the text of another release's."""


class VersionStatus(StatusPart):
    """One version of a model."""

    version: Int = Field(ge=1, description="The version.")
    state: AnyVersionState = Field(description="The state of the version.")
    traffic_percent: Int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="The percentage of the requests that name no version which it answers: with a rollout as measured, "
        "and absent where none was; otherwise by the servers that have it.",
    )
    replicas: Int = Field(default=0, ge=0, description="Servers that should have it.")
    available_replicas: Int = Field(default=0, ge=0, description="Servers on which it is loaded.")
    reason: str = Field(default="", description="The error, if the state is no success.")
    digests: tuple[str, ...] = Field(
        default=(),
        description="The files that servers have loaded: their digest if it is declared or the storage has it, else "
        "listing: and a digest of their names, sizes and ETags. More than one if servers fetched different "
        "files; the first ten.",
    )


class PlacementStatus(StatusPart):
    """The placement of a replica."""

    server: str = Field(description="The server.")
    node: str = Field(default="", description="The server's node.")
    version: Int = Field(default=1, ge=1, description="The version that is placed.")
    gpus: tuple[Int, ...] = Field(
        default=(),
        description="Planned GPUs, by their index on the node; empty on the CPU. In a cluster only their number is "
        "requested, and the node's device plugin chooses them.",
    )
    instances: Int = Field(default=1, ge=1, description="Instances on each of those devices.")


class CrashStatus(StatusPart):
    """What one instance had before a process of it crashed."""

    peak_gpu_memory: Quantity = Field(
        description="The most memory that one instance had on a GPU. For a day after the crash this much is left to "
        "the model next to others, where nothing lacks a place for it."
    )
    time: str = Field(description="When the process crashed, RFC 3339.")


class MeasuredFootprintStatus(StatusPart):
    """What all instances of a version on one server used, of the server where it is the most."""

    host_memory: Quantity | None = Field(default=None, description="Memory of its processes on the host.")
    gpu_memory: Quantity | None = Field(
        default=None, description="Memory of its processes on the GPU of the server where it is the most."
    )
    peak_gpu_memory: Quantity | None = Field(
        default=None, description="The most that gpuMemory was since the time since; the plan is made with it."
    )
    time: str = Field(default="", description="When it was measured, RFC 3339.")
    since: str = Field(
        default="",
        description="When this revision was first measured with as many instances on such a GPU, RFC 3339.",
    )
    version: Int = Field(default=0, ge=0, description="The version that was loaded.")
    revision: str = Field(default="", description="The revision of the spec that was loaded.")
    instances: Int = Field(default=1, ge=1, description="The instances on each GPU, or on the CPU.")
    server: str = Field(default="", description="The server where it was measured.")
    gpu_type: str = Field(default="", description="The product of the server's GPUs.")
    crash: CrashStatus | None = Field(default=None, description="The last crash of this revision, for a day.")


class FootprintStatus(StatusPart):
    """What one instance uses: declared, or computed from the model's shape. Only `measured` is measured."""

    gpu_memory: Quantity | None = Field(default=None, description="Memory on each GPU.")
    compute: MeasuredShare | None = Field(default=None, description="The share of one GPU's compute.")
    gpus: Int = Field(default=0, ge=0, description="Whole GPUs.")
    surge: Quantity | None = Field(
        default=None,
        description="Memory on each GPU that a replica keeps for the candidate of a rollout, next to the stable "
        "revision and until the rollout ends, of all instances.",
    )
    measured: MeasuredFootprintStatus | None = Field(
        default=None,
        description="What its processes were measured to use; absent for a model that runs in the server's process.",
    )


class VariantStatus(StatusPart):
    """One variant of a model."""

    name: str = Field(description="The variant.")
    model: str = Field(default="", description="The name under which its servers have it, for requests to it alone.")
    state: Annotated[str, camel_case(64)] = Field(
        description="Serving, Asleep, Waking, Loading, Building, Failed or Pending: the least on any server."
    )
    message: str = Field(default="", description="Why it does not serve.")
    max_concurrency: Int | None = Field(default=None, ge=1, description="Its crossover, if it is known.")
    replicas: Int = Field(default=0, ge=0, description="Servers that should have it.")
    available_replicas: Int = Field(default=0, ge=0, description="Servers on which it is loaded.")
    share: MeasuredShare | None = Field(
        default=None, description="Its share of the requests of the last minutes, if any came."
    )
    in_flight: Int | None = Field(default=None, ge=0, description="Its requests in flight, if they are measured.")
    scaling: ScalingStatus | None = Field(
        default=None, description="Its scaling decision, if it has replicas of its own; history has the last change."
    )
    engines: tuple[EngineStatus, ...] = Field(default=(), description="Its engines by version and architecture.")


class ResourceStatus(StatusPart):
    """The fields of every status."""

    observed_generation: Int = Field(default=0, ge=0, description="The spec's generation that the status is based on.")
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="The conditions, one of each type.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    replicas: Int = Field(default=0, ge=0, description="Replicas that are placed; kubectl scale reads this field.")
    available_replicas: Int = Field(default=0, ge=0, description="Replicas that serve.")
    selector: str = Field(default="", description="A label selector of the Pods, for autoscalers.")
    url: str = Field(default="", description="The URL of requests over HTTP.")
    grpc_address: str = Field(
        default="", description="The address for gRPC clients, as host:port; requests name the model."
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
    """The observed state of a model."""

    versions: tuple[VersionStatus, ...] = Field(
        default=(),
        description="The versions, and their traffic.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["version"]},
    )
    active_version: Int | None = Field(default=None, description="The version that most requests reach.")
    rollout: RolloutStatus | None = Field(
        default=None, description="The rollout: the revisions that serve and are proven, and the evidence."
    )
    placement: tuple[PlacementStatus, ...] = Field(
        default=(), description="The placement of its replicas; the first hundred."
    )
    remaining_placements: Int = Field(
        default=0, ge=0, description="The number of replicas that placement does not list."
    )
    footprint: FootprintStatus | None = Field(
        default=None, description="What one instance uses: declared, or computed from the model's shape."
    )
    engines: tuple[EngineStatus, ...] = Field(
        default=(), description="Its engines by version and architecture: at most fifty, serving ones first."
    )
    remaining_engines: Int = Field(default=0, ge=0, description="The number of engines that engines does not list.")
    scaling: ScalingStatus | None = Field(
        default=None, description="The scaling decision: replicas, instances and the reason."
    )
    bottleneck: BottleneckStatus | None = Field(default=None, description="The stage that delays requests the most.")
    preempted_by: PreemptionStatus | None = Field(
        default=None, description="What took the place of a replica last, until every replica has one again."
    )
    preempted: tuple[PreemptionStatus, ...] = Field(
        default=(), description="What lost its place to it and has none yet: the last sixteen."
    )
    language: LanguageStatus | None = Field(
        default=None, description="What its engines do, as measured; absent if it is no language model."
    )
    adapters: tuple[AdapterStatus, ...] = Field(
        default=(),
        description="Its adapters, in the order of the spec.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    variants: tuple[VariantStatus, ...] = Field(
        default=(),
        description="Its variants, in the order of the spec.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    regime: RegimeStatus | None = Field(
        default=None, description="The variant that new requests go to; absent without variants."
    )


class StepStatus(StatusPart):
    """One step of an ensemble."""

    model: str = Field(description="The step's model.")
    version: Int = Field(ge=1, description="The version that the ensemble runs.")
    state: AnyVersionState = Field(description="The state of the version.")


class EnsembleStatus(ResourceStatus):
    """The observed state of an ensemble."""

    versions: tuple[VersionStatus, ...] = Field(
        default=(),
        description="The ensemble's versions, and their traffic.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["version"]},
    )
    active_version: Int | None = Field(default=None, description="The version that most requests reach.")
    rollout: RolloutStatus | None = Field(
        default=None, description="The rollout: the revisions that serve and are proven, and the evidence."
    )
    steps: tuple[StepStatus, ...] = Field(
        default=(), description="The steps' models, at the versions that this version runs."
    )
    placement: tuple[PlacementStatus, ...] = Field(
        default=(), description="The placement of its replicas; the first hundred."
    )
    remaining_placements: Int = Field(
        default=0, ge=0, description="The number of replicas that placement does not list."
    )
    scaling: ScalingStatus | None = Field(
        default=None, description="The scaling decision: replicas, instances and the reason."
    )
    bottleneck: BottleneckStatus | None = Field(default=None, description="The step that delays requests the most.")
    preempted_by: PreemptionStatus | None = Field(
        default=None, description="What took the place of a replica last, until every replica has one again."
    )
    preempted: tuple[PreemptionStatus, ...] = Field(
        default=(), description="What lost its place to it and has none yet: the last sixteen."
    )


class GpuHolder(StatusPart):
    """A holder of GPUs on the pool's nodes that is not the pool, or why some cannot be used."""

    holder: str = Field(
        description="The holder: Pod, ServingPool or ResourceClaim namespace/name, or a build of an engine. Where "
        "nothing holds them, why they cannot be used: MIG, a ResourceSlice, a taint or a cordon."
    )
    gpus: Int = Field(default=0, ge=0, description="The number of its GPUs.")


class GpuCount(StatusPart):
    """GPUs of the pool's nodes."""

    total: Int = Field(default=0, ge=0, description="All GPUs of the selected nodes.")
    used: Int = Field(default=0, ge=0, description="GPUs of this pool's servers.")
    free: Int = Field(default=0, ge=0, description="Free GPUs.")
    withheld: Int = Field(default=0, ge=0, description="GPUs that others hold, or that cannot be used.")
    withheld_by: tuple[GpuHolder, ...] = Field(
        default=(),
        description="The holders of withheld GPUs, and why others cannot be used: the ten with the most GPUs.",
    )
    one_per_model: Int = Field(default=0, ge=0, description="GPUs that the same models would take if they shared none.")
    lower_bound: Int = Field(
        default=0, ge=0, description="GPUs that no plan can do without which places what this one places."
    )
    gap: Int = Field(
        default=0,
        ge=0,
        description="Used GPUs above lowerBound: at most so many could be spared. Those that servers keep without need "
        "count, too.",
    )


class ServerStatus(StatusPart):
    """One server."""

    name: str = Field(description="The server.")
    node: str = Field(default="", description="The node it runs on.")
    gpus: tuple[Int, ...] = Field(
        default=(),
        description="Planned GPUs, by their index on the node. In a cluster only their number is requested, and the "
        "node's device plugin chooses them.",
    )
    ready: bool = Field(default=False, description="Whether it answers.")
    models: Int = Field(default=0, ge=0, description="Models that it should have.")
    url: str = Field(default="", description="Its URL.")


class UnplacedStatus(StatusPart):
    """A replica that fits nowhere."""

    name: str = Field(description="The model or ensemble.")
    reason: str = Field(description="The reason, in one CamelCase word.")
    message: str = Field(description="Why, with the numbers, and what to do.")
    remedy: str = Field(
        default="",
        description="The smallest change by which one such replica has a place, as a plan with it says; absent where "
        "none was found.",
    )


class CordonedGpu(StatusPart):
    """A GPU that takes no server of any pool after repeated device errors."""

    node: str = Field(description="The node.")
    gpu: Int = Field(ge=0, description="The GPU's index on the node, as in servers.")
    time: str = Field(description="When it was cordoned, RFC 3339.")
    boot_id: str = Field(
        default="", description="The node's boot ID at that time; a restart of the node lifts the cordon."
    )
    models: tuple[str, ...] = Field(default=(), description="The models whose loads or executions had the errors.")
    message: str = Field(default="", description="What happened, and how to lift it.")


class ServingPoolStatus(ResourceStatus):
    """The observed state of a pool."""

    servers: tuple[ServerStatus, ...] = Field(
        default=(),
        description="The servers: at most a hundred, those that do not answer first.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    remaining_servers: Int = Field(default=0, ge=0, description="The number of servers that servers does not list.")
    gpus: GpuCount | None = Field(default=None, description="GPUs of the pool's nodes: all, used and free.")
    unplaced: tuple[UnplacedStatus, ...] = Field(
        default=(), description="Replicas that fit nowhere, and why; the first fifty."
    )
    remaining_unplaced: Int = Field(default=0, ge=0, description="The number of unplaced replicas that are not listed.")
    cordoned_gpus: tuple[CordonedGpu, ...] = Field(
        default=(),
        description="GPUs that take no server after device errors on this pool's servers. A cordon is lifted when the "
        "node is restarted or deleted, and by the pool's annotation argosy.dev/gpus-uncordoned-at (a time in "
        "RFC 3339).",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["node", "gpu"]},
    )
    consolidation: ConsolidationStatus | None = Field(
        default=None,
        description="What would come free if replicas were moved, and what is moved; absent with fewer than two "
        'servers on GPUs, and with consolidate: "Off".',
    )


Status = InferenceModelStatus | EnsembleStatus | ServingPoolStatus
"""The status of a resource of any of the three kinds."""

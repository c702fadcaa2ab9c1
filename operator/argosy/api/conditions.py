"""Conditions of resources, in the form that kstatus reads."""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema

from argosy.api.values.base import FrozenModel, Int


class ConditionType(StrEnum):
    """The type of a condition. The first three are kstatus's, the others are the parts of Ready."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    VALID = "Valid"
    PLACED = "Placed"
    ENGINE_READY = "EngineReady"
    ACCURACY_VERIFIED = "AccuracyVerified"
    LOADED = "Loaded"
    AVAILABLE = "Available"
    SCALING = "Scaling"


class ConditionStatus(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """The reason of a condition's status, listed by its part of Ready."""

    # Ready, Reconciling, Stalled
    SERVING = "Serving"
    PROGRESSING = "Progressing"
    SETTLED = "Settled"
    ROLLING_OUT = "RollingOut"
    ROLLED_BACK = "RolledBack"
    PAUSED = "Paused"
    SUSPENDED = "Suspended"
    DELETING = "Deleting"
    SCALED_TO_ZERO = "ScaledToZero"
    NO_MODELS = "NoModels"
    SERVERS_READY = "ServersReady"
    SERVERS_NOT_READY = "ServersNotReady"
    RECONCILE_FAILED = "ReconcileFailed"
    NOT_APPLIED = "NotApplied"
    DISRUPTION_LIMITED = "DisruptionLimited"
    # Valid
    VALID = "Valid"
    INVALID_SPEC = "InvalidSpec"
    UNKNOWN_POOL = "UnknownPool"
    NAME_CONFLICT = "NameConflict"
    INVALID_GRAPH = "InvalidGraph"
    STEP_INVALID = "StepInvalid"
    UNSUPPORTED_FORMAT = "UnsupportedFormat"
    SETTING_WITHOUT_EFFECT = "SettingWithoutEffect"
    TOPOLOGY_ADVICE = "TopologyAdvice"
    FOOTPRINT_DIFFERS = "FootprintDiffers"
    CROSSOVER_UNKNOWN = "CrossoverUnknown"
    # Placed
    PLACED = "Placed"
    PENDING = "Pending"
    PARTIALLY_PLACED = "PartiallyPlaced"
    NO_NODES = "NoNodes"
    NO_GPUS = "NoGpus"
    NO_MATCHING_NODE = "NoMatchingNode"
    NO_GPU_OF_TYPE = "NoGpuOfType"
    COMPUTE_TOO_LARGE = "ComputeTooLarge"
    GPU_TOO_SMALL = "GpuTooSmall"
    TOO_FEW_GPUS_ON_A_NODE = "TooFewGpusOnANode"
    NO_NVLINK = "NoNVLink"
    SERVER_TOO_SMALL = "ServerTooSmall"
    GROUP_TOO_LARGE = "GroupTooLarge"
    SERVER_LIMIT = "ServerLimit"
    REPLICAS_APART = "ReplicasApart"
    ANTI_AFFINITY = "AntiAffinity"
    NO_FREE_GPUS = "NoFreeGpus"
    NO_FREE_MEMORY = "NoRoom"
    CONFIG_TOO_LARGE = "ConfigTooLarge"
    NO_CONFIG_SPACE = "NoRoomForConfig"
    NO_ENGINE_FOR_ARCHITECTURE = "NoEngineForArchitecture"
    # EngineReady; what waits for its engine, or has none, has the reason under Placed, too
    ENGINE_NOT_NEEDED = "EngineNotNeeded"
    ENGINE_BUILT = "EngineBuilt"
    ENGINE_CACHED = "EngineCached"
    ENGINE_NOT_BUILT = "EngineNotBuilt"
    ENGINE_OF_ANOTHER_RELEASE = "EngineOfAnotherRelease"
    BUILD_PENDING = "BuildPending"
    BUILDING = "Building"
    BUILD_FAILED = "BuildFailed"
    # AccuracyVerified
    ACCURACY_NOT_REQUIRED = "AccuracyNotRequired"
    ACCURACY_VERIFIED = "AccuracyVerified"
    ACCURACY_SKIPPED = "AccuracySkipped"
    ACCURACY_PENDING = "AccuracyPending"
    ACCURACY_TOO_LOW = "AccuracyTooLow"
    # Loaded
    LOADED = "Loaded"
    LOADING = "Loading"
    PARTIALLY_LOADED = "PartiallyLoaded"
    LOAD_FAILED = "LoadFailed"
    DOWNLOAD_FAILED = "DownloadFailed"
    DIGEST_MISMATCH = "DigestMismatch"
    CRASH_LOOP = "CrashLoop"
    DEVICE_ERROR = "DeviceError"
    # Available
    AVAILABLE = "Available"
    NOT_REACHABLE = "NotReachable"
    REPORT_EXPIRED = "ReportExpired"
    REPORT_INCOMPLETE = "ReportIncomplete"
    # Scaling
    STEADY = "Steady"
    SCALED_UP = "ScaledUp"
    SCALED_DOWN = "ScaledDown"
    AT_MINIMUM = "AtMinimum"
    AT_MAXIMUM = "AtMaximum"
    LIMITED_BY_CAPACITY = "LimitedByCapacity"
    FIXED_REPLICAS = "FixedReplicas"
    NO_SIGNALS = "NoSignals"


def camel_case(longest: int) -> WithJsonSchema:
    """Return the schema of any CamelCase word, so that a status of another release is valid too."""
    return WithJsonSchema({"type": "string", "pattern": "^[A-Z][A-Za-z0-9]*$", "maxLength": longest})


AnyConditionType = Annotated[ConditionType | str, Field(union_mode="left_to_right"), camel_case(316)]
"""A type of this release, or the word of another's."""
AnyReason = Annotated[Reason | str, Field(union_mode="left_to_right"), camel_case(1024)]
"""A reason of this release, or the word of another's."""


class Condition(FrozenModel):
    """A condition of a resource."""

    model_config = ConfigDict(extra="ignore")

    type: AnyConditionType = Field(description="The condition's type.")
    status: ConditionStatus = Field(description="The condition's status: True, False or Unknown.")
    reason: AnyReason = Field(description="The reason, in one CamelCase word.")
    message: str = Field(
        default="",
        max_length=32768,
        description="The reason in a sentence, with the field or the numbers, and what to do.",
    )
    last_transition_time: str = Field(
        default="",
        description="When the status last changed, RFC 3339.",
        json_schema_extra={"format": "date-time"},
    )
    observed_generation: Int = Field(
        default=0, ge=0, description="The spec's generation that the condition is based on."
    )

"""How a pool's models are placed on servers, and whether a fleet that runs is repacked."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from argosy.api.values.base import ApiModel, Int
from argosy.api.values.quantity import Duration, Quantity

GIB = 1 << 30


class Consolidate(StrEnum):
    """Whether models that serve are moved so that whole GPUs come free."""

    OFF = "Off"
    RECOMMEND = "Recommend"
    AUTO = "Auto"


class Preemption(StrEnum):
    """Whether a model that must serve gives way to one of a higher priority."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


def _no_boolean(value: Any) -> Any:
    """Return the value. Raises ValueError for a boolean, which YAML makes of Off without quotes, too."""
    if isinstance(value, bool):
        modes = ", ".join(mode.value for mode in Consolidate)
        instead = '"Auto" to move models, or "Recommend" to be told' if value else '"Off", in quotes'
        raise ValueError(f"{str(value).lower()} is none of {modes}; write {instead}")
    return value


def _moves_something(value: int) -> int:
    """Return a number of bytes. Raises ValueError for 0."""
    if not value:
        raise ValueError('is 0; to move nothing, set spec.packing.consolidate to Recommend, or "Off" in quotes')
    return value


class ConsolidationBudget(ApiModel):
    """The most that consolidation moves within any hour. What one step needs beyond it is never done."""

    moves_per_hour: Int = Field(default=60, ge=1, le=10000, description="Replicas that are moved. Default: 60.")
    bytes_per_hour: Annotated[Quantity, AfterValidator(_moves_something)] = Field(
        default=500 * GIB,
        description="Memory of the replicas that are moved, which is loaded on other servers. Default: 500Gi.",
        json_schema_extra={"default": "500Gi"},
    )


class Packing(ApiModel):
    """How models are placed on servers."""

    consolidate: Annotated[Consolidate, BeforeValidator(_no_boolean)] = Field(
        default=Consolidate.RECOMMEND,
        description="Whether replicas that serve are moved so that whole GPUs come free. Recommend: nothing is moved, "
        "and status.consolidation says what Auto would move. Auto: they are moved within consolidationBudget, each "
        'reachable in its new place before it leaves the old one. "Off" needs quotes. Default: Recommend.',
    )
    consolidate_after: Duration = Field(
        default=60_000,
        description="For how long the pool must be at rest first: nothing is placed, moved, loaded or released, and "
        "every server is ready. Default: 1m.",
        json_schema_extra={"default": "1m"},
    )
    consolidation_budget: ConsolidationBudget = Field(
        default_factory=ConsolidationBudget, description="The most that is moved within an hour."
    )
    preemption: Preemption = Field(
        default=Preemption.NEVER,
        description="Whether replicas of this pool that must serve give way to one that fits nowhere, be it of this "
        "pool or of another one on the same nodes. Those beyond minReplicas give way in any case. LowerPriority: those "
        "of a lower spec.priority give way, too, the fewest and the lowest first; they are drained, and placed again "
        "once there is room. Default: Never.",
    )

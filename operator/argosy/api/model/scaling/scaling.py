"""Scaling of replicas, instances and batching windows by measurements."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar, Protocol

from pydantic import Field, StringConstraints

from argosy.api.model.rollout.analysis import unknown_variables
from argosy.api.model.scaling.scale import replicas_in_order
from argosy.api.model.scaling.schedule import MAX_SCHEDULES, Schedule
from argosy.api.values.base import ApiModel, Fault, Int, Number, Rule
from argosy.api.values.meta import LABEL
from argosy.api.values.quantity import Duration, PositiveDuration, Share, format_percent
from argosy.api.values.tensors import BY_NAME, unique_names

VARIABLES = ("namespace", "pool", "model")
"""What `$(name)` may stand for in a query."""
IDLE_MS, HOLD_MS = 900_000, 300_000
BUSY_MIN, BUSY_MAX = 700, 850
MOST_INSTANCES = 8
"""The default of `maxInstances`."""


class Scaled(Protocol):
    """A spec whose replicas are scaled by measurements."""

    max_replicas: int | None

    @property
    def scaling(self) -> "Scaling | None":
        """The settings of scaling."""


def _a_range(busy: "BusyRange") -> Iterator[Fault]:
    if not busy.max:
        yield Fault("is 0%; raise it", ("max",))
    elif busy.min is not None and busy.max <= busy.min:
        yield Fault(
            f"is {format_percent(busy.max)}, no more than min {format_percent(busy.min)}; raise it or lower min",
            ("max",),
        )


class BusyRange(ApiModel):
    """The share of their time that instances spend executing: above it some are added, below it some are removed."""

    min: Share | None = Field(
        default=None,
        description="Replicas are removed only if the others are then busy for at most this share. The margin between "
        "adding and removing, max divided by min, is that of all targets for each replica. Default: 70/85 of max, "
        f"which is {format_percent(BUSY_MIN)} for the default max.",
    )
    max: Share = Field(
        default=BUSY_MAX,
        description='Above this share more are added. Default: "85%".',
        json_schema_extra={"default": "85%"},
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("min", "max"), _a_range),)

    @property
    def lower(self) -> float:
        """`min`, or its default for this `max`, in thousandths."""
        return self.max * BUSY_MIN / BUSY_MAX if self.min is None else self.min


class QueryTargetType(StrEnum):
    """How a query's value is compared with its target, as in a HorizontalPodAutoscaler."""

    AVERAGE_VALUE = "AverageValue"
    VALUE = "Value"


class ScalingQuery(ApiModel):
    """A query of the pool's Prometheus whose single value scales replicas."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL)] = Field(
        description="Its name in the status."
    )
    query: str = Field(
        min_length=1,
        max_length=4096,
        description="A PromQL expression, in which $(namespace), $(pool) and $(model) are replaced by those of the "
        "resource.",
    )
    target: Number = Field(gt=0, description="The target: the value should be at most this.")
    type: QueryTargetType = Field(
        default=QueryTargetType.AVERAGE_VALUE,
        description="AverageValue: the target is for each replica; Value: for all together. Default: AverageValue.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("query",), lambda query: unknown_variables(query.query, VARIABLES)),)


class ScalingTargets(ApiModel):
    """Targets in addition to the SLO. The one that requires the most replicas decides."""

    queue_share: Share | None = Field(
        default=None, description='The largest share of its time that a request may wait, as "10%". Default: no target.'
    )
    concurrency: Number | None = Field(
        default=None, gt=0, description="Requests, waiting or executing, for each replica. Default: no target."
    )
    tokens_per_second: Number | None = Field(
        default=None, gt=0, description="Tokens that each replica generates in a second. Default: no target."
    )
    busy: BusyRange = Field(
        default_factory=BusyRange,
        description="The share of their time that instances spend executing. Default: from "
        f"{format_percent(BUSY_MIN)} to {format_percent(BUSY_MAX)}.",
    )
    queries: tuple[ScalingQuery, ...] = Field(
        default=(),
        max_length=16,
        description="Queries of the Prometheus in the pool's spec.monitoring. Default: none.",
        json_schema_extra=BY_NAME,
    )

    rules: ClassVar[tuple[Rule, ...]] = (unique_names("queries", "queries", "query"),)


_STEP = "The most replicas that are {done} at once. Default: any number."
_COOLDOWN = "How long after a change the next one {way} may come, such as 30s. Default: 0s."


class ScaleUp(ApiModel):
    """How fast replicas are added."""

    max_step: Int | None = Field(default=None, ge=1, le=10000, description=_STEP.format(done="added"))
    cooldown: Duration = Field(default=0, description=_COOLDOWN.format(way="up"), json_schema_extra={"default": "0s"})


class ScaleDown(ApiModel):
    """How fast replicas and instances are removed."""

    max_step: Int | None = Field(default=None, ge=1, le=10000, description=_STEP.format(done="removed"))
    cooldown: Duration = Field(default=0, description=_COOLDOWN.format(way="down"), json_schema_extra={"default": "0s"})
    stabilization_window: Duration | None = Field(
        default=None,
        description="The time over which all measurements must allow it, such as 5m. Default: 5m.",
    )


class Scaling(ApiModel):
    """How replicas are scaled."""

    targets: ScalingTargets = Field(
        default_factory=ScalingTargets, description="Targets in addition to slo. Default: the busy share of instances."
    )
    scale_up: ScaleUp = Field(default_factory=ScaleUp, description="How fast replicas are added. Default: at once.")
    scale_down: ScaleDown = Field(
        default_factory=ScaleDown, description="How fast replicas are removed. Default: after 5m."
    )
    idle_timeout: PositiveDuration = Field(
        default=IDLE_MS,
        description="The time without requests after which replicas go to zero, if minReplicas is 0. Default: 15m.",
        json_schema_extra={"default": "15m"},
    )
    hold_timeout: PositiveDuration = Field(
        default=HOLD_MS,
        description="How long a request may wait for the first replica. Default: 5m.",
        json_schema_extra={"default": "5m"},
    )
    schedules: tuple[Schedule, ...] = Field(
        default=(),
        max_length=MAX_SCHEDULES,
        description="Other bounds at certain hours; if several apply, the first one counts. Default: none.",
        json_schema_extra=BY_NAME,
    )

    rules: ClassVar[tuple[Rule, ...]] = (unique_names("schedules", "schedules", "schedule"),)


class ModelScaling(Scaling):
    """How replicas, instances and the batching window are scaled."""

    min_instances: Int = Field(
        default=1, ge=1, le=256, description="The minimum number of instances on each device of a replica. Default: 1."
    )
    max_instances: Int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="The maximum number of instances on each device of a replica. Default: 8, or minInstances if "
        "that is more; 1 if an instance takes whole GPUs.",
    )
    max_queue_delay: Duration | None = Field(
        default=None,
        description="The longest batching window that Argosy may set, if batching leaves it open; 0s disables waiting. "
        "Default: a quarter of slo.latency's smallest percentile.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (*Scaling.rules, replicas_in_order("min_instances", "max_instances"))

    @property
    def most_instances(self) -> int:
        """`maxInstances`, or its default for a model whose instances share GPUs."""
        return max(MOST_INSTANCES, self.min_instances) if self.max_instances is None else self.max_instances


def scheduled_bounds(spec: "Scaled") -> Iterator[Fault]:
    """Yield an error for each schedule that exceeds the maximum of the spec and has none of its own."""
    for index, schedule in enumerate(spec.scaling.schedules if spec.scaling else ()):
        limit = spec.max_replicas
        if limit is not None and schedule.max_replicas is None and schedule.min_replicas > limit:
            yield Fault(
                f"is {schedule.min_replicas}, more than spec.maxReplicas {limit}; lower it, or give the schedule a "
                "maxReplicas",
                ("scaling", "schedules", index, "minReplicas"),
            )

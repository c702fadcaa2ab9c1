"""The replacement of the revision that serves by a new one."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field

from argosy.api.model.rollout.analysis import Analysis, MeasurementName
from argosy.api.model.rollout.shadow import Shadow
from argosy.api.model.rollout.steps import RolloutStep, StickyKey
from argosy.api.values.base import ApiModel, Fault, Flag, Rule
from argosy.api.values.quantity import format_duration, format_percent
from argosy.api.values.tensors import DataType

MAX_STEPS = 20
MAX_STICKY = 8
PROVING_FIELDS = ("steps", "shadow")
"""Of which a rollout has at least one if it proves a new version; the others of its fields say how."""


class Strategy(StrEnum):
    """Where a new version gets its memory."""

    AUTO = "Auto"
    SURGE = "Surge"
    RECREATE = "Recreate"


def _rising(rollout: "Rollout") -> Iterator[Fault]:
    for index, (before, after) in enumerate(zip(rollout.steps, rollout.steps[1:], strict=False), 1):
        if after.traffic <= before.traffic:
            yield Fault(
                f"must be more than the step before it has ({format_percent(before.traffic)}); "
                f"found {format_percent(after.traffic)}",
                ("steps", index, "traffic"),
            )


def _within_the_timeout(rollout: "Rollout") -> Iterator[Fault]:
    limit = rollout.analysis.timeout
    durations = {("steps", index, "pause"): step.pause for index, step in enumerate(rollout.steps)}
    if rollout.shadow is not None:
        durations["shadow", "duration"] = rollout.shadow.duration  # type: ignore[index]
    for path, duration in durations.items():
        if duration > limit:
            yield Fault(
                f"is {format_duration(duration)}, longer than analysis.timeout ({format_duration(limit)}): raise "
                "analysis.timeout or shorten this",
                path,
            )


def _compared(rollout: "Rollout") -> Iterator[Fault]:
    """Yield an error for each dry run of a comparison that is not made."""
    shadow = rollout.shadow
    by_rows = shadow is not None and any(one.top1_agreement is not None for one in shadow.tolerances)
    for index, name in enumerate(rollout.analysis.dry_run):
        path = ("analysis", "dryRun", index)
        if name is MeasurementName.DIFFERENT_ANSWERS and shadow is None:
            yield Fault(f"{name} is not measured; set rollout.shadow or leave this out", path)
        elif name is MeasurementName.TOP1_AGREEMENT and not by_rows:
            yield Fault(f"{name} is not measured; set it in shadow.tolerances or leave this out", path)


def _unique_keys(rollout: "Rollout") -> Iterator[Fault]:
    keys = [(key.header or "").lower() or (key.parameter,) for key in rollout.sticky]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            yield Fault(f"is already sticky[{keys.index(key)}]; keep one of them", ("sticky", index))


class Rollout(ApiModel):
    """How a new revision replaces the stable one. After the last step it gets all traffic."""

    strategy: Strategy = Field(
        default=Strategy.AUTO,
        description="Surge loads the new version next to the old one, and waits until there is memory for both; "
        "Recreate unloads the old one first, with a gap; Auto surges where memory allows, or else replaces one replica "
        "at a time while others serve. In a rollout, Auto places a further replica on free GPUs where there are any, "
        "and recreates a single one whose requests an activator queues. Default: Auto.",
    )
    shadow: Shadow | None = Field(
        default=None,
        description="Mirrors requests to the candidate before it gets any, and compares the answers. Default: no "
        "mirroring.",
    )
    steps: tuple[RolloutStep, ...] = Field(
        default=(),
        max_length=MAX_STEPS,
        description="Steps of rising traffic. Default: all traffic as soon as it is loaded.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["traffic"]},
    )
    sticky: tuple[StickyKey, ...] = Field(
        default=(),
        max_length=MAX_STICKY,
        description="Keys of requests by which they stay with one version; the first that a request has counts. "
        "Requests of one sequence always do. Default: none.",
    )
    analysis: Analysis = Field(
        default_factory=Analysis,
        description="What the candidate must achieve in shadow and at every step. Default: by the defaults of its "
        "fields.",
    )
    paused: Flag = Field(
        default=False,
        description="Whether to stay at the current step, with its clock stopped, until it is set to false. A "
        "candidate that fails is still rolled back. Default: false.",
    )

    @property
    def proves(self) -> bool:
        """Whether a new version is proven before it gets all traffic."""
        return any(getattr(self, field) for field in PROVING_FIELDS)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(("steps",), _rising),
        Rule(("steps", "shadow", "analysis"), _within_the_timeout),
        Rule(("sticky",), _unique_keys),
        Rule(("analysis", "shadow"), _compared),
    )


def tolerances_rule() -> Rule:
    """Return the rule that each tolerance of a model or an ensemble names an output whose elements are numbers."""
    return Rule(("rollout", "outputs"), _tolerances_of_outputs)


def _tolerances_of_outputs(spec: Any) -> Iterator[Fault]:
    shadow = spec.rollout.shadow if spec.rollout is not None else None
    types = {output.name: output.data_type for output in spec.outputs}
    for index, tolerance in enumerate(shadow.tolerances if shadow is not None and types else ()):
        path = ("rollout", "shadow", "tolerances", index, "output")
        if tolerance.output not in types:
            yield Fault(f"{tolerance.output!r} is no output; declared: {', '.join(types)}", path)
        elif types[tolerance.output] is DataType.STRING:
            yield Fault(f"{tolerance.output!r} has texts, which are compared exactly; leave this entry out", path)


MemberRollout = Annotated[
    Rollout | None,
    Field(description="How a new revision replaces the stable one. Default: it gets all traffic once it is loaded."),
]
"""The rollout of a model or an ensemble."""

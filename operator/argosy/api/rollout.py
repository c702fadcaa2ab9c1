"""How a new version takes over from the one that serves."""

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from argosy.api.base import ApiModel, Fault, Int, Rule
from argosy.api.quantity import Duration, Percent

_STEPS = 20
_AFTER_THE_FIRST = list(range(1, _STEPS))


class Strategy(StrEnum):
    """Where a new version gets its room."""

    AUTO = "Auto"
    BESIDE = "Beside"
    REPLACE = "Replace"


class CanaryStep(ApiModel):
    """A share of the traffic, and how long it stays there."""

    traffic_percent: Int = Field(ge=1, le=100, description="The share of requests for the new version, in percent.")
    pause: Duration = Field(
        default=60,
        description="How long to watch before the next step, such as 5m. Default: 1m.",
        json_schema_extra={"default": "1m"},
    )


class Analysis(ApiModel):
    """What the new version must show at every step; when it fails, traffic goes back to the old one."""

    max_error_rate: Percent = Field(
        default=10,
        description='The most of its requests that may fail, as "1%". Default: "1%".',
        json_schema_extra={"default": "1%"},
    )
    max_latency_increase: Percent | None = Field(
        default=None,
        description='How much slower its mean latency may be than the old version\'s, as "20%". Default: any.',
    )
    min_requests: Int = Field(
        default=20,
        ge=1,
        le=2**31 - 1,
        description="Requests it must have answered before it is judged. Default: 20.",
    )
    timeout: Duration = Field(
        default=1800,
        description="How long to wait for those requests before rolling back. Default: 30m.",
        json_schema_extra={"default": "30m"},
    )


def _rising(rollout: "Rollout") -> Iterator[Fault]:
    for index in range(1, len(rollout.canary)):
        before, after = rollout.canary[index - 1].traffic_percent, rollout.canary[index].traffic_percent
        if after <= before:
            yield Fault(
                f"must be more than the step before it has ({before}); found {after}",
                ("canary", index, "trafficPercent"),
            )


class Rollout(ApiModel):
    """How a new version takes over. After the last canary step it gets all the traffic."""

    strategy: Strategy = Field(
        default=Strategy.AUTO,
        description="Beside loads it next to the old version; Replace unloads the old one first, "
        "with a gap; Auto "
        "takes Beside where there is room. Default: Auto.",
    )
    canary: tuple[CanaryStep, ...] = Field(
        default=(),
        max_length=_STEPS,
        description="Steps of rising traffic. Default: all of it as soon as it is loaded.",
    )
    analysis: Analysis | None = Field(
        default=None, description="What is checked at every step. Default: that it stays loaded."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("canary",),
            _rising,
            # By index: API servers before 1.30 refuse a rule that goes through a list made by `map`.
            cel=f"!has(self.canary) || {_AFTER_THE_FIRST}.all(step, step >= size(self.canary) || "
            "self.canary[step - 1].trafficPercent < self.canary[step].trafficPercent)",
            says="each canary step has more traffic than the one before it",
        ),
    )

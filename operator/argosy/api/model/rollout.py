"""The replacement of the version that serves by a new one."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Flag, Int, Number, Rule, in_order, one_bound
from argosy.api.values.meta import LABEL
from argosy.api.values.quantity import Duration, Rate, Share, format_percent
from argosy.api.values.tensors import BY_NAME

MAX_STEPS = 20
VARIABLES = ("namespace", "pool", "model", "version", "stableVersion")
"""What `$(name)` may stand for in a query."""
_VARIABLE = re.compile(r"\$\(([^)]*)\)")
ERROR_RATE, RATIO = 1000, 2.0
"""Millionths of the requests, and times the old version's p99 latency, that a new version may have by default."""


class Strategy(StrEnum):
    """Where a new version gets its memory."""

    AUTO = "Auto"
    SURGE = "Surge"
    RECREATE = "Recreate"


def _some_traffic(what: str) -> Rule:
    """Return the rule that a step or shadow, `what` in its message, has traffic."""

    def check(part: "RolloutStep | Shadow") -> Iterator[Fault]:
        if not part.traffic:
            yield Fault("must be more than 0%", ("traffic",))

    return Rule(
        ("traffic",),
        check,
        cel="!self.traffic.matches('^0+([.]0)?%$')",
        says=f"a {what} has more than 0% of the traffic",
    )


_REQUESTS = Field(
    default=None,
    ge=1,
    le=2**31 - 1,
    description="Requests that the new version must have answered before it is analyzed. Default: "
    "analysis.minRequests.",
)


class RolloutStep(ApiModel):
    """A share of the traffic for the new version, and how long it lasts."""

    traffic: Share = Field(description='The share of requests for the new version, as "5%".')
    pause: Duration = Field(
        default=60_000,
        description="The minimum duration of the step, such as 5m. Default: 1m.",
        json_schema_extra={"default": "1m"},
    )
    min_requests: Int | None = _REQUESTS

    rules: ClassVar[tuple[Rule, ...]] = (_some_traffic("step"),)


class Shadow(ApiModel):
    """Mirroring before the first step: the new version gets a copy of requests, and its responses are discarded.

    Mirrored requests take GPU time twice. Side effects of a model happen twice, too.
    """

    traffic: Share = Field(description='The share of requests that is mirrored, as "10%".')
    duration: Duration = Field(
        default=600_000,
        description="The minimum duration of mirroring, such as 10m. Default: 10m.",
        json_schema_extra={"default": "10m"},
    )
    min_requests: Int | None = _REQUESTS

    rules: ClassVar[tuple[Rule, ...]] = (_some_traffic("shadow"),)


def _some_ratio(ratio: "LatencyRatio") -> Iterator[Fault]:
    if ratio.p50 is None and ratio.p95 is None and ratio.p99 is None:
        yield Fault("set one or more of p50, p95 and p99, such as p99: 2")


_RATIO = "The largest ratio of its {of} to that of the old version, such as {example}. Default: no limit."


class LatencyRatio(ApiModel):
    """The largest ratios of the new version's latencies to those of the old one."""

    p50: Number | None = Field(default=None, gt=0, description=_RATIO.format(of="median latency", example="1.5"))
    p95: Number | None = Field(default=None, gt=0, description=_RATIO.format(of="p95 latency", example="2"))
    p99: Number | None = Field(default=None, gt=0, description=_RATIO.format(of="p99 latency", example="2"))

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("p50", "p95", "p99"),
            _some_ratio,
            cel="has(self.p50) || has(self.p95) || has(self.p99)",
            says="set one or more percentiles, such as p99",
        ),
    )


def unknown_variables(query: str, variables: tuple[str, ...]) -> Iterator[Fault]:
    """Yield an error of the field `query` for each $(NAME) in it that is none of the `variables`."""
    for name in _VARIABLE.findall(query):
        if name not in variables:
            names = ", ".join(f"$({variable})" for variable in variables)
            yield Fault(f"$({name}) stands for nothing; known: {names}", ("query",))


class AnalysisQuery(ApiModel):
    """A query of the pool's Prometheus whose single value must be within bounds."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL)] = Field(
        description="Its name in the status."
    )
    query: str = Field(
        min_length=1,
        max_length=4096,
        description="A PromQL expression, in which $(namespace), $(pool), $(model), $(version) and "
        "$(stableVersion) are replaced by those of the rollout; $(version) is the new one.",
    )
    min: Number | None = Field(default=None, description="The lowest passing value. Default: no limit.")
    max: Number | None = Field(default=None, description="The highest passing value. Default: no limit.")

    rules: ClassVar[tuple[Rule, ...]] = (
        one_bound(),
        in_order(),
        Rule(("query",), lambda query: unknown_variables(query.query, VARIABLES)),
    )


def _named_once(analysis: "Analysis") -> Iterator[Fault]:
    names = [query.name for query in analysis.queries]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Fault(
                f"{name!r} is already queries[{names.index(name)}]; give it another name", ("queries", index, "name")
            )


class Analysis(ApiModel):
    """What the new version must achieve in shadow and at every step; otherwise it is rolled back."""

    error_rate: Rate = Field(
        default=ERROR_RATE,
        description='The largest share of its requests that may fail, as "0.1%". Default: "0.1%".',
        json_schema_extra={"default": "0.1%"},
    )
    latency_ratio: LatencyRatio = Field(
        default_factory=lambda: LatencyRatio(p99=RATIO),
        description="The largest ratios of its latency to that of the old version. Default: {p99: 2}.",
    )
    min_requests: Int = Field(
        default=100,
        ge=1,
        le=2**31 - 1,
        description="Requests that it must have answered before it is analyzed. Default: 100.",
    )
    timeout: Duration = Field(
        default=1_800_000,
        description="How long to wait for those requests before rolling back. Default: 30m.",
        json_schema_extra={"default": "30m"},
    )
    queries: tuple[AnalysisQuery, ...] = Field(
        default=(),
        max_length=16,
        description="Further queries of the Prometheus in the pool's spec.monitoring. Default: none.",
        json_schema_extra=BY_NAME,
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("queries",), _named_once),)


def _rising(rollout: "Rollout") -> Iterator[Fault]:
    for index, (before, after) in enumerate(zip(rollout.steps, rollout.steps[1:], strict=False), 1):
        if after.traffic <= before.traffic:
            yield Fault(
                f"must be more than the step before it has ({format_percent(before.traffic)}); "
                f"found {format_percent(after.traffic)}",
                ("steps", index, "traffic"),
            )


class Rollout(ApiModel):
    """How a new version replaces the former one. After the last step it gets all traffic."""

    strategy: Strategy = Field(
        default=Strategy.AUTO,
        description="Surge loads the new version next to the old one, and waits until there is memory for both; "
        "Recreate unloads the old one first, with a gap; Auto surges where memory allows, and else "
        "replaces one replica at a time in place while others serve. Default: Auto.",
    )
    shadow: Shadow | None = Field(
        default=None, description="Mirrors requests to the new version before it gets any. Default: no mirroring."
    )
    steps: tuple[RolloutStep, ...] = Field(
        default=(),
        max_length=MAX_STEPS,
        description="Steps of rising traffic. Default: all traffic as soon as it is loaded.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["traffic"]},
    )
    analysis: Analysis = Field(
        default_factory=Analysis,
        description="What the new version must achieve in shadow and at every step. Default: few errors, and at most "
        "twice the p99 latency.",
    )
    paused: Flag = Field(
        default=False,
        description="Whether to stay at the current step, until it is set to false. Default: false.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("steps",), _rising),)


MemberRollout = Annotated[
    Rollout | None,
    Field(description="How a new version replaces the former one. Default: it gets all traffic once it is loaded."),
]
"""The rollout of a model or an ensemble."""

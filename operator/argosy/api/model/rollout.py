"""How a new version takes over from the one that serves."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Flag, Int, Number, Rule
from argosy.api.values.bounds import in_order, one_bound
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
    """Where a new version gets its room."""

    AUTO = "Auto"
    SURGE = "Surge"
    RECREATE = "Recreate"


def _some_traffic(part: "RolloutStep | Shadow") -> Iterator[Fault]:
    if not part.traffic:
        yield Fault("must be more than 0%", ("traffic",))


_REQUESTS = Field(
    default=None,
    ge=1,
    le=2**31 - 1,
    description="Requests that the new version must have answered before it is judged. Default: analysis.minRequests.",
)


class RolloutStep(ApiModel):
    """A share of the traffic for the new version, and what is waited for there."""

    traffic: Share = Field(description='The share of requests for the new version, as "5%".')
    pause: Duration = Field(
        default=60_000,
        description="How long to stay there at least, such as 5m. Default: 1m.",
        json_schema_extra={"default": "1m"},
    )
    min_requests: Int | None = _REQUESTS

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("traffic",),
            _some_traffic,
            cel="!self.traffic.matches('^0+([.]0)?%$')",
            says="a step has more than 0% of the traffic",
        ),
    )


class Shadow(ApiModel):
    """Before the first step: requests that the old version answers go to the new one as well, which answers to nobody.

    It takes the GPU time of the mirrored requests twice. What a model does beside answering is done twice, too.
    """

    traffic: Share = Field(description='The share of requests that is mirrored, as "10%".')
    duration: Duration = Field(
        default=600_000,
        description="How long requests are mirrored at least, such as 10m. Default: 10m.",
        json_schema_extra={"default": "10m"},
    )
    min_requests: Int | None = _REQUESTS

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("traffic",),
            _some_traffic,
            cel="!self.traffic.matches('^0+([.]0)?%$')",
            says="a shadow has more than 0% of the traffic",
        ),
    )


def _some_ratio(ratio: "LatencyRatio") -> Iterator[Fault]:
    if ratio.p50 is None and ratio.p95 is None and ratio.p99 is None:
        yield Fault("set one or more of p50, p95 and p99, such as p99: 2")


_RATIO = "The most times the old version's {of} that the new one's may be, such as {example}. Default: any."


class LatencyRatio(ApiModel):
    """How much slower than the old version the new one may be."""

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


def unknown_variables(query: str, known: tuple[str, ...]) -> Iterator[Fault]:
    """Yield a fault of the field `query` for each of its variables that is not `known`."""
    for name in _VARIABLE.findall(query):
        if name not in known:
            yield Fault(f"$({name}) stands for nothing; known: {', '.join(f'$({each})' for each in known)}", ("query",))


class AnalysisQuery(ApiModel):
    """A query of the pool's Prometheus whose one value must stay within bounds."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL)] = Field(
        description="What the status calls it."
    )
    query: str = Field(
        min_length=1,
        max_length=4096,
        description="In PromQL, where $(namespace), $(pool), $(model), $(version) and $(stableVersion) stand for the "
        "rollout's own; $(version) is the new one.",
    )
    min: Number | None = Field(default=None, description="The least its value may be. Default: any.")
    max: Number | None = Field(default=None, description="The most its value may be. Default: any.")

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
    """What the new version must show in shadow and at every step; when it fails, traffic goes back to the old one."""

    error_rate: Rate = Field(
        default=ERROR_RATE,
        description='The most of its requests that may fail, as "0.1%". Default: "0.1%".',
        json_schema_extra={"default": "0.1%"},
    )
    latency_ratio: LatencyRatio = Field(
        default_factory=lambda: LatencyRatio(p99=RATIO),
        description="How much slower than the old version it may be. Default: {p99: 2}.",
    )
    min_requests: Int = Field(
        default=100,
        ge=1,
        le=2**31 - 1,
        description="Requests it must have answered before it is judged. Default: 100.",
    )
    timeout: Duration = Field(
        default=1_800_000,
        description="How long to wait for those requests before rolling back. Default: 30m.",
        json_schema_extra={"default": "30m"},
    )
    queries: tuple[AnalysisQuery, ...] = Field(
        default=(),
        max_length=16,
        description="More to look at, asked of the Prometheus of the pool's spec.monitoring. Default: nothing more.",
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
    """How a new version takes over. After the last step it gets all the traffic."""

    strategy: Strategy = Field(
        default=Strategy.AUTO,
        description="Surge loads it beside the old version, and waits where there is no room for both; Recreate "
        "unloads the old one first, with a gap; Auto takes Surge where there is room, and else changes one replica "
        "in its place while others serve. Default: Auto.",
    )
    shadow: Shadow | None = Field(
        default=None, description="Mirrors requests to it before it gets any. Default: nothing is mirrored."
    )
    steps: tuple[RolloutStep, ...] = Field(
        default=(),
        max_length=MAX_STEPS,
        description="Steps of rising traffic. Default: all of it as soon as it is loaded.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["traffic"]},
    )
    analysis: Analysis = Field(
        default_factory=Analysis,
        description="What it must show in shadow and at every step. Default: few errors, and no slowness.",
    )
    paused: Flag = Field(
        default=False,
        description="Whether to stay at the present step, until it is set to false. Default: false.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("steps",), _rising),)

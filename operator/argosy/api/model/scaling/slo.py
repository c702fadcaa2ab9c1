"""Service level objectives of models and ensembles, for scaling and rollouts."""

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import ClassVar

from pydantic import Field

from argosy.api.values.base import ApiModel, Fault, Rule
from argosy.api.values.quantity import PositiveDuration, Rate, format_duration

PERCENTILES = ("p50", "p90", "p95", "p99", "p999")
"""The possible percentiles, in order."""


def _some(percentiles: "Percentiles") -> Iterator[Fault]:
    if not any(getattr(percentiles, name) is not None for name in PERCENTILES):
        yield Fault(f"set one or more of {', '.join(PERCENTILES)}, such as p99: 200ms")


def _in_order(percentiles: "Percentiles") -> Iterator[Fault]:
    present = [(name, value) for name in PERCENTILES if (value := getattr(percentiles, name)) is not None]
    for (low, least), (high, most) in pairwise(present):
        if most < least:
            yield Fault(
                f"is {format_duration(most)}, less than {low} ({format_duration(least)}); raise it or lower {low}",
                (high,),
            )


class Percentiles(ApiModel):
    """The largest durations of percentiles of requests: p99 is for 99 of 100, p999 for 999 of 1000."""

    p50: PositiveDuration | None = Field(default=None, description="For half of the requests, such as 50ms.")
    p90: PositiveDuration | None = Field(default=None, description="For 90 of 100 requests, such as 100ms.")
    p95: PositiveDuration | None = Field(default=None, description="For 95 of 100 requests, such as 150ms.")
    p99: PositiveDuration | None = Field(default=None, description="For 99 of 100 requests, such as 200ms.")
    p999: PositiveDuration | None = Field(default=None, description="For 999 of 1000 requests, such as 1s.")

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            PERCENTILES,
            _some,
            cel=" || ".join(f"has(self.{name})" for name in PERCENTILES),
            says="set one or more percentiles, such as p99",
        ),
        Rule(
            PERCENTILES,
            _in_order,
            cel=" && ".join(
                f"(!has(self.{low}) || !has(self.{high}) || duration(self.{low}) <= duration(self.{high}))"
                for low, high in combinations(PERCENTILES, 2)
            ),
            says="a higher percentile has no smaller duration",
        ),
    )


class Slo(ApiModel):
    """Service level objectives. Replicas are added, up to maxReplicas, while they are not met."""

    latency: Percentiles | None = Field(
        default=None, description="The time from request to response, such as {p99: 200ms}. Default: no objective."
    )
    queue_delay: Percentiles | None = Field(
        default=None, description="The time in the queue, such as {p90: 5ms}. Default: no objective."
    )
    time_to_first_token: Percentiles | None = Field(
        default=None,
        description="The time from request to the first of several responses, such as {p95: 500ms}. Default: no "
        "objective.",
    )
    inter_token_latency: Percentiles | None = Field(
        default=None,
        description="The time from one token of an answer to the next one, such as {p95: 50ms}; of models that count "
        "no tokens, from one response to the next. Default: no objective.",
    )
    error_rate: Rate | None = Field(
        default=None, description='The largest share of requests that may fail, as "0.1%". Default: no objective.'
    )

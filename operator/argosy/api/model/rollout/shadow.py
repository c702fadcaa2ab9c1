"""Mirroring before the first step: the candidate gets copies of requests, and its responses are compared."""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from argosy.api.model.rollout.steps import REQUESTS, some_traffic
from argosy.api.values.base import ApiModel, Fault, Int, Number, Rule
from argosy.api.values.quantity import PositiveDuration, Rate, Share

DURATION_MS = 600_000
MAX_DIFFERENT = 10_000
"""Millionths of the compared requests."""
_NO_BOUND = "set one or more of absolute, relative and top1Agreement, or leave the output out to compare it exactly"


def _some_bound(tolerance: "OutputTolerance") -> Iterator[Fault]:
    if tolerance.absolute is None and tolerance.relative is None and tolerance.top1_agreement is None:
        yield Fault(_NO_BOUND)


class OutputTolerance(ApiModel):
    """How far an output of the candidate may be from that of the stable revision."""

    output: str = Field(min_length=1, max_length=253, description="The output's name.")
    absolute: Number | None = Field(
        default=None, ge=0, description="The largest difference of two elements, such as 0.001. Default: 0."
    )
    relative: Number | None = Field(
        default=None,
        ge=0,
        description="The largest difference of two elements, as a multiple of the stable revision's element, such as "
        "0.01. An element passes within absolute plus this. Default: 0.",
    )
    top1_agreement: Share | None = Field(
        default=None,
        description='The smallest share of rows in which the largest element has the same index, as "99%". Elements '
        "are then not compared one by one unless absolute or relative is set. Default: elements are compared.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("absolute", "relative", "top1_agreement"),
            _some_bound,
            cel="has(self.absolute) || has(self.relative) || has(self.top1Agreement)",
            says="set one or more of absolute, relative and top1Agreement",
        ),
    )


def _unique_outputs(shadow: "Shadow") -> Iterator[Fault]:
    names = [tolerance.output for tolerance in shadow.tolerances]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Fault(
                f"{name!r} is already tolerances[{names.index(name)}]; keep one of them",
                ("tolerances", index, "output"),
            )


class Shadow(ApiModel):
    """Mirroring before the first step: the candidate gets copies of requests, and its responses are discarded.

    Mirrored requests take GPU time twice. Side effects of a model happen twice, too.
    """

    traffic: Share = Field(description='The share of requests that is mirrored, as "10%".')
    duration: PositiveDuration = Field(
        default=DURATION_MS,
        description="The minimum duration of mirroring, such as 10m. Default: 10m.",
        json_schema_extra={"default": "10m"},
    )
    min_requests: Int | None = REQUESTS
    max_different: Rate = Field(
        default=MAX_DIFFERENT,
        description="A candidate whose answers differ in this share of the compared requests, or more, is rolled back, "
        'as "1%"; one of a tenth of it, or less, passes. "0%": one different answer is enough. Default: "1%".',
        json_schema_extra={"default": "1%"},
    )
    tolerances: tuple[OutputTolerance, ...] = Field(
        default=(),
        max_length=256,
        description="How far outputs may differ. Default: they are compared exactly; outputs of type BYTES always are.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["output"]},
    )

    rules: ClassVar[tuple[Rule, ...]] = (some_traffic("shadow"), Rule(("tolerances",), _unique_outputs))

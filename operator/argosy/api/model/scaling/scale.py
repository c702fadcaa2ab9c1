"""Bounds of replicas, which models, ensembles and pools have in common."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field
from pydantic.alias_generators import to_camel

from argosy.api.values.base import ApiModel, Fault, Int, Rule


def replicas_in_order(least: str, most: str) -> Rule:
    """Return the rule that attribute `most`, if it is set, is at least attribute `least`."""
    low, high = to_camel(least), to_camel(most)

    def check(spec: ApiModel) -> Iterator[Fault]:
        fewest, limit = getattr(spec, least), getattr(spec, most)
        if None not in (fewest, limit) and limit < fewest:
            yield Fault(f"is {limit}, less than {low} {fewest}; raise it or lower {low}", (high,))

    return Rule(
        (least, most),
        check,
        cel=f"!has(self.{low}) || !has(self.{high}) || self.{low} <= self.{high}",
        says=f"{high} is at least {low}",
    )


def fewest_of(fixed: int | None, least: int) -> int:
    """Return `fixed` if it is set, else `least`."""
    return least if fixed is None else fixed


def most_of(fixed: int | None, least: int, limit: int | None) -> int:
    """Return `fixed` or else `limit`; if neither is set, `least`, and at least 1."""
    if fixed is not None:
        return fixed
    return max(least, 1) if limit is None else limit


Replicas = Annotated[
    Int | None,
    Field(
        ge=0,
        le=10000,
        description="The number of replicas, which /scale reads and writes; it decides, whatever minReplicas and "
        "maxReplicas are. Default: Argosy decides, from minReplicas to maxReplicas.",
    ),
]
MinReplicas = Annotated[
    Int | None,
    Field(
        ge=0,
        le=10000,
        description="The minimum number of replicas. Where not all replicas fit, those beyond it give way. Default: 1, "
        "or replicas if that is set.",
    ),
]
MaxReplicas = Annotated[
    Int | None,
    Field(
        ge=1,
        le=10000,
        description="The maximum number of replicas. Default: minReplicas, or 1 if that is 0.",
    ),
]
Priority = Annotated[
    Int,
    Field(
        ge=-1000,
        le=1000,
        description="The priority among the models and ensembles of a pool: the higher one is placed first, and "
        "preempts replicas that others have beyond their minimum; where the pool's packing.preemption is "
        "LowerPriority, those that a lower one must have, too. Default: 0.",
    ),
]

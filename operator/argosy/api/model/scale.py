"""The rule of least and most replicas, which three kinds share."""

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from argosy.api.values.base import ApiModel, Fault, Rule


def replicas_in_order(least: str, most: str) -> Rule:
    """A rule: attribute `most`, where it is set, is no less than attribute `least`."""
    low, high = to_camel(least), to_camel(most)

    def check(spec: ApiModel) -> Iterator[Fault]:
        fewest, limit = getattr(spec, least), getattr(spec, most)
        if limit is not None and limit < fewest:
            yield Fault(f"is {limit}, less than {low} {fewest}; raise it or lower {low}", (high,))

    return Rule(
        (least, most),
        check,
        cel=f"!has(self.{high}) || self.{low} <= self.{high}",
        says=f"{high} is at least {low}",
    )

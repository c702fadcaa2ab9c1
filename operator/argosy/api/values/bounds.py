"""Rules of the bounds `min` and `max`, which several parts of resources share."""

from collections.abc import Iterator

from argosy.api.values.base import ApiModel, Fault, Rule


def one_bound() -> Rule:
    """Return the rule that `min`, `max` or both are set."""

    def check(part: ApiModel) -> Iterator[Fault]:
        if getattr(part, "min") is None and getattr(part, "max") is None:  # noqa: B009  # not every part has them
            yield Fault("set min, max or both: the least and the most that its value may be")

    return Rule(("min", "max"), check, cel="has(self.min) || has(self.max)", says="set min, max or both")


def in_order() -> Rule:
    """Return the rule that `min` is at most `max` if both are set."""

    def check(part: ApiModel) -> Iterator[Fault]:
        least, most = getattr(part, "min"), getattr(part, "max")  # noqa: B009  # not every part has them
        if least is not None and most is not None and most < least:
            yield Fault(f"is {most:g}, less than min {least:g}; raise it or lower min", ("max",))

    return Rule(
        ("min", "max"),
        check,
        cel="!has(self.min) || !has(self.max) || self.min <= self.max",
        says="max is at least min",
    )

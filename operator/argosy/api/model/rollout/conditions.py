"""Conditions on the result of a query, such as `result < 0.01 && result >= 0`.

A condition is one or more comparisons of `result` with a number, joined by `&&` or by `||`, without parentheses. `&&`
binds more closely, as in PromQL's `and`. `result[0]`, as Argo Rollouts' conditions have it, is `result`.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_COMPARISON = re.compile(
    r"\s*result(?:\[0\])?\s*(<=|>=|==|!=|<|>)\s*([-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*"
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a result with a number."""

    operator: str
    number: float

    def holds(self, result: float) -> bool:
        """Return whether it is true of the result. No comparison is true of NaN."""
        return not math.isnan(result) and _OPERATORS[self.operator](result, self.number)


@dataclass(frozen=True, slots=True)
class ResultCondition:
    """Alternatives, each a list of comparisons that must all hold."""

    alternatives: tuple[tuple[Comparison, ...], ...]

    @classmethod
    def parse(cls, text: str) -> "ResultCondition":
        """Return the condition that a text states. Raises ValueError with what may be written."""
        return cls(tuple(tuple(_comparison(part) for part in either.split("&&")) for either in text.split("||")))

    def holds(self, result: float) -> bool:
        """Return whether the condition is true of the result."""
        return any(all(comparison.holds(result) for comparison in both) for both in self.alternatives)


def _comparison(text: str) -> Comparison:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text.strip()!r} is no comparison; write it as result < 0.01, and join several with && or ||"
        )
    number = float(match[2])
    if not math.isfinite(number):
        raise ValueError(f"{match[2]} is too large a number")
    return Comparison(match[1], number)


def _is_condition(text: str) -> str:
    ResultCondition.parse(text)
    return text


ConditionText = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(_is_condition)]
"""A condition as it is written in a spec; `ResultCondition.parse` reads it."""

"""Conditions on the result of a query."""

import math

import pytest

from argosy.api.model.rollout.conditions import ResultCondition


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("result < 0.01", (0.0, -1.0), (0.01, 1.0, math.nan, math.inf)),
        ("result <= 1e-2", (0.01,), (0.011,)),
        ("result>=+5", (5.0, math.inf), (4.9,)),
        ("result > .5 && result < 2", (1.0,), (0.5, 2.0)),
        ("result == 0 || result >= 10 && result != 12", (0.0, 10.0), (5.0, 12.0)),
    ],
)
def test_a_condition_holds(text: str, yes: tuple[float, ...], no: tuple[float, ...]) -> None:
    condition = ResultCondition.parse(text)
    assert [condition.holds(value) for value in yes] == [True] * len(yes)
    assert [condition.holds(value) for value in no] == [False] * len(no)


@pytest.mark.parametrize(
    "text", ["", "result", "result = 1", "result < x", "result < 1 &&", "1 < result", "result < 1 or 2"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no comparison"):
        ResultCondition.parse(text)


def test_the_only_element_is_the_result_as_in_argo_rollouts() -> None:
    assert ResultCondition.parse("result[0] >= 0.95 && result < 2") == ResultCondition.parse("result>=0.95&&result<2")
    with pytest.raises(ValueError, match="is no comparison"):
        ResultCondition.parse("result[1] > 0")

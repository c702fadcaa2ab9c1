"""A Kubernetes API server says of bodies what our own checks of the CRDs say, and fills in what they fill in."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.operator.api.conftest import changed
from tests.operator.api.judging import fill, refusals, root
from tests.operator.api.on_server.asking import Asking
from tests.operator.api.rules.breaking import BREAKING
from tests.operator.api.test_api_rules import CASES

from argosy.api import KINDS, parse_body

Body = dict[str, Any]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_right_body_is_taken_with_the_defaults_of_the_schema(
    server: Asking, body: Callable[..., Body], kind: str
) -> None:
    right, filled = body(kind), body(kind)
    fill(root(kind)["properties"]["spec"], filled["spec"])
    taken = server.create(right, dry=True)
    assert taken.right, taken.message
    assert taken.body["spec"] == filled["spec"]


def test_every_broken_rule_is_refused_in_its_words(server: Asking, body: Callable[..., Body]) -> None:
    for kind, changes, message in BREAKING:
        answer = server.create(body(kind, changes), dry=True)
        assert answer.status == 422, (kind, changes)
        assert message in answer.message


@pytest.fixture(scope="module")
def verdicts() -> list[tuple[str, dict[str, Any], bool]]:
    """Return kinds, changes of valid bodies, and whether our own checks of the CRDs refuse them."""
    return [
        (kind, changes, bool(refusals(changed(kind, changes))))
        for kind, cases in CASES.items()
        for changes, *_ in cases
    ]


def test_every_wrong_body_has_the_verdict_that_our_own_checks_have(
    server: Asking, body: Callable[..., Body], verdicts: list[tuple[str, dict[str, Any], bool]]
) -> None:
    """The CRDs refuse some of what the models refuse: the API server exactly that."""
    for kind, changes, refused in verdicts:
        answer = server.create(body(kind, changes), dry=True)
        assert answer.right is not refused, (kind, changes, answer.message)
    assert {refused for *_, refused in verdicts} == {True, False}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("InferenceModel", {"rollout.analysis.queries.0.successCondition": "result >= 1 && result <= 2.5"}),
        ("ServingPool", {"runtime.podTemplate.spec": None, "runtime.args": None, "storage": None}),
        ("InferenceModel", {"versionPolicy": {"all": {}}}),
    ],
)
def test_what_the_models_take_the_server_takes(
    server: Asking, body: Callable[..., Body], kind: str, changes: dict[str, Any]
) -> None:
    assert parse_body(body(kind, changes))[1] == []
    answer = server.create(body(kind, changes), dry=True)
    assert answer.right, answer.message

"""The rules' CEL, evaluated: it accepts what the models accept, and refuses what they refuse."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.operator.api.judging import broken, fill, refusals, root
from tests.operator.api.rules.breaking import BREAKING, SEVERAL

from argosy.api import KINDS, parse_body

Body = dict[str, Any]
Schema = dict[str, Any]


def broken_by(kind: str, spec: Body) -> list[str]:
    """Return the messages of the rules that a spec breaks."""
    schema = root(kind)["properties"]["spec"]
    fill(schema, spec)
    return broken(schema, spec)


@pytest.mark.parametrize(("kind", "changes", "message"), BREAKING)
def test_a_broken_rule_is_refused(body: Callable[..., Body], kind: str, changes: dict[str, Any], message: str) -> None:
    assert broken_by(kind, body(kind, changes)["spec"]) == [message]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_right_body_breaks_no_rule(body: Callable[..., Body], kind: str) -> None:
    assert broken_by(kind, body(kind)["spec"]) == []


def test_every_rule_is_broken_by_some_case() -> None:
    reported: set[str] = set()
    waiting = [root(kind) for kind in KINDS]
    while waiting:
        schema = waiting.pop()
        reported |= {rule["message"] for rule in schema.get("x-kubernetes-validations", ())}
        waiting += schema.get("properties", {}).values()
        waiting += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    assert reported == {message for *_, message in BREAKING}


@pytest.mark.parametrize(
    "accuracy",
    [
        {"skip": "its builder measured it"},
        {"metric": "max_absolute_error", "max": 0.01, "dataUri": "file:d"},
        {"script": "file:gate.py", "max": 0.5, "dataUri": "file:d"},
        {"script": "file:gate.py", "min": 0.1, "max": 0.5, "dataUri": "file:d"},
    ],
)
def test_every_way_to_show_accuracy_is_right(body: Callable[..., Body], accuracy: dict[str, Any]) -> None:
    right = body("InferenceModel", {"engine.accuracy": accuracy})
    assert parse_body(right)[1] == []
    assert broken_by("InferenceModel", right["spec"]) == []


def test_a_smallest_body_breaks_no_rule() -> None:
    spec = {"poolRef": {"name": "p"}, "modelFormat": {"name": "python"}, "version": 1, "storageUri": "file:m"}
    spec |= {"footprint": {}, "parallelism": {}, "batching": {}, "rollout": {}}
    assert broken_by("InferenceModel", spec) == []
    assert broken_by("ServingPool", {}) == []
    pool = {"tolerations": [{"key": "gpus"}], "runtime": {"args": ["--id=a", "--http-portal"]}}
    assert broken_by("ServingPool", pool) == []


def test_several_versions_instead_of_one_break_no_rule(body: Callable[..., Body]) -> None:
    changes = SEVERAL | {"version": ..., "storageUri": ..., "digest": ...}
    assert broken_by("InferenceModel", body("InferenceModel", changes)["spec"]) == []


@pytest.mark.parametrize(
    ("changes", "reported_value"),
    [
        (
            {"engine.accuracy": {"script": "file:g.py", "min": 0.5, "max": 0, "dataUri": "file:d"}},
            "max is at least min",
        ),
        ({"maxBatchSize": 1e10}, "is not of type 'integer'"),
        ({"versionPolicy": {"specific": {"versions": [1e10]}}}, "is not of type 'integer'"),
    ],
)
def test_integers_and_others_are_distinguished_by_the_schema(
    body: Callable[..., Body], changes: dict[str, Any], reported_value: str
) -> None:
    wrong = body("InferenceModel", changes)
    assert parse_body(wrong)[0] is None
    assert any(reported_value in message for message in refusals(wrong))

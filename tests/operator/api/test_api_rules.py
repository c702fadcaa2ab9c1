"""Every rule of one resource: what breaks it, where it is reported and what the message says."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import Field, ValidationError
from tests.operator.api.rules.engine import CONFIG, ENGINE
from tests.operator.api.rules.ensembles_and_pools import ENSEMBLE, POOL
from tests.operator.api.rules.placement import PLACEMENT
from tests.operator.api.rules.rollout import ROLLOUT
from tests.operator.api.rules.scaling import REPLICAS, SCALING
from tests.operator.api.rules.tensors import TENSORS
from tests.operator.api.rules.versions import VERSIONS

from argosy.api import ApiModel, parse_body
from argosy.api.problems import explain
from argosy.api.values.base import Int

Body = dict[str, Any]
_MODEL = [*VERSIONS, *TENSORS, *PLACEMENT, *REPLICAS, *ENGINE, *ROLLOUT, *CONFIG, *SCALING]
CASES = {"InferenceModel": _MODEL, "Ensemble": ENSEMBLE, "ServingPool": POOL}


def _cases() -> list[Any]:
    return [
        pytest.param(kind, *case, id=f"{kind}-{case[1]}-{number}")
        for kind, cases in CASES.items()
        for number, case in enumerate(cases)
    ]


@pytest.mark.parametrize(("kind", "changes", "path", "reported_value"), _cases())
def test_a_broken_rule_is_reported_at_its_field(
    body: Callable[..., Body], kind: str, changes: dict[str, Any], path: str, reported_value: str
) -> None:
    resource, problems = parse_body(body(kind, changes), "m.yaml")
    assert resource is None
    matches = [(problem.path, problem.message) for problem in problems]
    assert any(where == path and reported_value in message for where, message in matches), matches


@pytest.mark.parametrize("kind", ["InferenceModel", "Ensemble", "ServingPool"])
def test_a_right_body_has_no_problem_and_keeps_its_words(body: Callable[..., Body], kind: str) -> None:
    resource, problems = parse_body(body(kind))
    assert problems == []
    assert resource is not None
    written = resource.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert written == body(kind)


def test_rules_still_run_alongside_a_wrong_field(body: Callable[..., Body]) -> None:
    wrong = body("InferenceModel", {"version": 0, "minReplicas": 9, "footprint.gpus": 1, "inputs.0.name": "scale"})
    _, problems = parse_body(wrong)
    assert {problem.path for problem in problems} == {
        "spec.version",
        "spec.maxReplicas",
        "spec.footprint.compute",
        "spec.inputs[1].name",
    }


def test_a_rule_over_a_wrong_field_is_left_out(body: Callable[..., Body]) -> None:
    _, problems = parse_body(body("InferenceModel", {"minReplicas": "many"}))
    assert [problem.path for problem in problems] == ["spec.minReplicas"]


@pytest.mark.parametrize(
    ("kind", "changes", "path"),
    [
        ("Ensemble", {"inputs.0.dataType": "FP32"}, "spec.inputs[0].dataType"),
        ("InferenceModel", {"inputs.0.dims": [0]}, "spec.inputs[0].dims[0]"),
        ("InferenceModel", {"versionPolicy.specific.versions": [0]}, "spec.versionPolicy.specific.versions[0]"),
    ],
)
def test_one_wrong_entry_of_a_list_is_one_mistake(
    body: Callable[..., Body], kind: str, changes: dict[str, Any], path: str
) -> None:
    _, problems = parse_body(body(kind, changes))
    assert [problem.path for problem in problems] == [path]


def test_a_short_list_of_wrong_entries_is_short_by_what_was_written() -> None:
    class Pair(ApiModel):
        both: tuple[Int, ...] = Field(min_length=2)

    with pytest.raises(ValidationError) as caught:
        Pair.model_validate({"both": ["x"]})
    assert list(explain(caught.value, Pair)) == [
        ("both[0]", "expected a whole number; found 'x'"),
        ("both", "must have 2 or more entries; found 1"),
    ]


def test_a_folder_of_trees_may_have_a_configuration_of_its_own(body: Callable[..., Body]) -> None:
    trees = {"modelFormat.name": "lightgbm", "engine": ..., "storageUri": "s3://models/ranker"}
    assert parse_body(body("InferenceModel", {**trees, "config": ..., "inputs": ..., "outputs": ...}))[1] == []

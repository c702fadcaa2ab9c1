"""Whatever is read, problems come back; nothing is raised, and nothing half-read is let through."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.properties import examples

from argosy.api import Problem, parse_body, parse_documents
from argosy.api.inferencemodel import InferenceModelSpec
from argosy.api.values.base import Rule

BODIES = {
    body["kind"]: body
    for body in yaml.safe_load_all((Path(__file__).parent / "bodies.yaml").read_text(encoding="utf-8"))
}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VARIANTS: dict[str, Any] = {
    "apiVersion": "argosy.dev/v1alpha1",
    "kind": "InferenceModel",
    "metadata": {"name": "chat"},
    "spec": {
        "poolRef": {"name": "gpus"},
        "modelFormat": {"name": "vllm"},
        "version": 1,
        "storageUri": "hf://org/model",
        "footprint": {"gpus": 1},
        "adapters": [{"name": "sql", "storageUri": "hf://org/sql"}],
        "variants": [{"name": "few", "maxConcurrency": 8, "maxBatchSize": 4}, {"name": "many"}],
    },
}
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return every path in a body."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [path, *(location for key in keys for location in paths(value[key], (*path, key)))]


PATHS = [(kind, location) for kind, body in BODIES.items() for location in paths(body) if location]


def _rules(value: Any) -> Iterator[tuple[Rule, BaseModel]]:
    """Yield the rules of a value and its parts, each with a model that has only the fields which the rule declares."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _rules(part)
    elif isinstance(value, BaseModel):
        for rule in getattr(value, "rules", ()):
            alone = type(value).model_construct()
            alone.__dict__.clear()
            alone.__dict__.update({field: getattr(value, field) for field in rule.reads})
            yield rule, alone
        yield from _rules(list(value.__dict__.values()))


@examples(300)
@given(st.sampled_from(PATHS), VALUES)
def test_any_value_at_any_location_is_read_or_reported(location: tuple[str, tuple[Any, ...]], value: Any) -> None:
    kind, path = location
    body = deepcopy(BODIES[kind])
    at: Any = body
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    resource, problems = parse_body(body, "f")
    assert (resource is None) == bool(problems)
    assert all(isinstance(problem, Problem) and problem.message for problem in problems)


@pytest.mark.parametrize("field", sorted(one.alias or name for name, one in InferenceModelSpec.model_fields.items()))
def test_a_wrong_field_of_a_model_with_variants_is_reported(field: str) -> None:
    """Rules of variants and adapters make the specs of variants, from fields that may be absent."""
    resource, problems = parse_body(VARIANTS | {"spec": VARIANTS["spec"] | {field: 0.5}}, "f")
    assert resource is None
    assert [problem.message for problem in problems]


@pytest.mark.parametrize("body", [*BODIES.values(), VARIANTS], ids=[*BODIES, "variants"])
def test_a_rule_reads_only_the_fields_that_it_declares(body: dict[str, Any]) -> None:
    """A rule runs as soon as the fields that it declares are valid; any other one may be absent."""
    resource, _ = parse_body(body)
    checked = [list(rule.check(alone)) for rule, alone in _rules(resource)]
    assert checked
    assert not any(checked)


@examples(200)
@given(VALUES)
def test_any_body_is_read_or_reported(body: Any) -> None:
    resource, problems = parse_body(body)
    assert resource is None
    assert problems


@pytest.mark.parametrize(
    "text",
    [
        "kind: [InferenceModel]",
        "kind: {Ensemble: 1}",
        "kind: 0x" + "f" * 5000,
        "kind: Ensemble\na: !!bool x",
        "kind: Ensemble\na: !!int ''",
        "kind: Ensemble\na: !!float ''",
        "kind: Ensemble\na: !!timestamp x",
        "kind: Ensemble\na: !!float " + ":".join("1" * 400),
        'kind: Ensemble\na: "\\UFFFFFFFF"',
    ],
)
def test_a_text_with_a_kind_or_a_value_of_another_type_is_reported(text: str) -> None:
    resources, problems = parse_documents(f"apiVersion: argosy.dev/v1alpha1\n{text}", "f")
    assert resources == []
    assert problems


@examples(200)
@given(st.text(alphabet=st.sampled_from("a:-[]{}&*!#|>\"'\n 01.%@?,"), max_size=40))
def test_any_text_is_read_or_reported(text: str) -> None:
    resources, _ = parse_documents(text, "f")
    assert resources == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 5000, "nested too deeply"),
        ("a: &a [*a]", "line 1: not YAML: found unconstructable recursive node"),
        ("a: !!int x", "line 1: not YAML"),
        ("a: 1\nb: \x00", "line 2: not YAML: character 0 "),
        ("a: " + "1" * 5000, "line 1: not YAML"),
    ],
)
def test_hostile_texts_are_reported(text: str, message: str) -> None:
    resources, problems = parse_documents(text, "f")
    assert resources == []
    assert message in str(problems[0])


def test_numbers_are_finite() -> None:
    body = deepcopy(BODIES["InferenceModel"])
    body["spec"]["slo"] = {"queueDelayMilliseconds": float("inf")}
    _, problems = parse_body(body)
    assert [problem.path for problem in problems] == ["spec.slo.queueDelayMilliseconds"]

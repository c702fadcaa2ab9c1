"""What is wrong between resources is the same whether or not it was known in the round before."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, model, pool

from argosy.api import Ensemble, Problem, Resource
from argosy.api.values.reuse import RoundCache
from argosy.planning.validation.graph import Invalid
from argosy.planning.validation.related import related
from argosy.reconcile.checks import checked
from argosy.render.config.configrules import check_together

INVALID = Invalid((), is_error=True)
VARIANTS = [{"name": "small", "maxConcurrency": 4}, {"name": "large", "instances": 2}]
X, Y = ([{"name": name, "dataType": "TYPE_FP32", "dims": [1]}] for name in "XY")


def pipe(*steps: str) -> Ensemble:
    """Return an ensemble of two steps that maps X to Y, as a model does."""
    ends = (({"X": "X"}, {"Y": "T"}), ({"X": "T"}, {"Y": "Y"}))
    of_steps = [
        {"model": step, "inputs": inputs, "outputs": outputs}
        for step, (inputs, outputs) in zip(steps, ends, strict=True)
    ]
    return ensemble("pipe", inputs=X, outputs=Y, steps=of_steps)


FLEET: tuple[Resource, ...] = (
    pool(),
    pool("t", runtime={"name": "triton"}),
    *(model(name) for name in "abcd"),
    pipe("a", "b"),
    ensemble("outer", "pipe", "c"),
    model("near", affinity=[{"name": "d"}]),
    model("varied", variants=VARIANTS),
    model("tree", poolRef={"name": "t"}, modelFormat={"name": "python"}),
)
"""Resources that fit together."""
CHANGES: Mapping[str, Mapping[str, Resource | None]] = {
    "nothing": {},
    "a model alone": {"d": model("d", memory=30)},
    "a step with another tensor": {"b": model("b", inputs=[{"name": "X", "dataType": "TYPE_INT32", "dims": [1]}])},
    "a step of an inner ensemble on other nodes": {
        "a": model("a", nodeSelector={"zone": "x"}),
        "c": model("c", nodeSelector={"zone": "y"}),
    },
    "a step that goes": {"a": None},
    "a pool that goes": {"t": None},
    "a pool with other nodes": {"p": pool(nodeSelector={"zone": "x"}), "d": model("d", nodeSelector={"zone": "y"})},
    "what another one is near goes": {"d": None},
    "a name of clients that another one has": {"d": model("d", modelName="c")},
    "the name of a variant": {"new": model("varied--small")},
    "an ensemble with the name of a model": {"new": ensemble("d", "c")},
    "the same name twice": {"new": model("d", memory=30)},
    "ensembles that hold each other": {"pipe": pipe("a", "outer")},
    "a backend that no image has with the others": {
        "tree": model("tree", poolRef={"name": "t"}, modelFormat={"name": "vllm"}),
        "new": model("new", poolRef={"name": "t"}, modelFormat={"name": "tensorrt_llm"}),
    },
    "apart from what runs with it": {"a": model("a", antiAffinity=[{"name": "b"}])},
    "a model of another pool in an ensemble": {"a": model("a", poolRef={"name": "t"})},
    "a reference to nothing": {"new": ensemble("new", "x")},
    "a reference to what is invalid": {"new": model("new", poolRef={"name": "nowhere"})},
}


def fleet(changes: Mapping[str, Resource | None]) -> list[Resource]:
    """Return the fleet with these resources in place of those of the names, or without them."""
    there = {one.name: one for one in FLEET}
    return [one for one in {**there, **changes}.values() if one is not None]


def problems_of(resources: list[Resource], cache: RoundCache) -> list[Problem]:
    cache.next_round()
    return list(checked(0, resources, INVALID, cache.sort("problems")))


def test_the_fleet_fits_together() -> None:
    assert problems_of(fleet({}), RoundCache()) == []


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_is_judged_as_without_the_round_before(changes: Mapping[str, Resource | None]) -> None:
    cache = RoundCache()
    for resources in (fleet({}), fleet(changes), fleet({**changes, "c": model("c", memory=30)}), fleet({})):
        assert problems_of(resources, cache) == check_together(resources, invalid=INVALID)


def test_most_of_these_changes_are_wrong() -> None:
    right = {name for name, changes in CHANGES.items() if not check_together(fleet(changes), invalid=INVALID)}
    assert right == {"nothing", "a model alone"}


def test_what_is_invalid_by_now_is_wrong() -> None:
    cache, resources = RoundCache(), fleet({"new": model("new", poolRef={"name": "t"})})
    assert problems_of(resources, cache) == []
    cache.next_round()
    without = [one for one in resources if one.name != "t"]
    invalid = Invalid({"ServingPool default/t"}, is_error=True)
    assert list(checked(0, without, invalid, cache.sort("problems"))) == check_together(without, invalid=invalid)


def test_a_changed_model_is_checked_with_what_refers_to_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(changed: Resource) -> set[str]:
        return {one.name for one in related(FLEET, [changed]) if one.kind != "ServingPool"}

    assert names(model("d")) - {"tree"} >= {"d", "near"}
    assert {"pipe", "outer", "a", "b", "c"} <= names(model("a"))
    calls: list[Any] = []
    monkeypatch.setattr("argosy.reconcile.checks.check_together", lambda some, invalid: calls.append(some) or [])
    cache = RoundCache()
    many = [*FLEET, *(model(f"m{number}") for number in range(20))]
    problems_of(many, cache)
    problems_of([*many[:-1], model("m19", memory=30)], cache)
    problems_of([*many[:-1], model("m19", memory=30)], cache)
    everything, part = calls
    assert len(everything) == len(many)
    assert not {one.name for one in part} & {f"m{number}" for number in range(18)}

"""Revisions of specs: what makes another one, and what is as declared whichever revision serves."""

from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, model

from argosy.planning.rollouts.revision import changed_fields, revision_of, with_declared

MEMORY = {"gpuMemory": "10Gi"}
SPREAD = {"topologySpread": [{"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]}
APART = {"affinity": [{"name": "n"}], "antiAffinity": [{"name": "o"}]}
H100 = {"gpuType": {"products": ["NVIDIA-H100-80GB-HBM3"]}}


@pytest.mark.parametrize(
    "where", [{"nodeSelector": {"disk": "ssd"}}, {"footprint": {**MEMORY, **H100}}, {"replicas": 3}, SPREAD, APART]
)
def test_where_and_how_often_a_model_runs_is_no_part_of_its_revision(where: dict[str, Any]) -> None:
    plain, placed = model("m", footprint=MEMORY), model("m", **{"footprint": MEMORY, **where})
    assert revision_of(plain) == revision_of(placed)
    assert changed_fields(plain, placed) == []
    assert with_declared(plain, placed).spec == placed.spec
    assert with_declared(placed, plain).spec == plain.spec


def test_a_gpu_type_alone_is_the_revision_of_no_footprint() -> None:
    assert revision_of(model("m", footprint=H100)) == revision_of(model("m", footprint=None))
    assert (
        with_declared(model("m", footprint=None), model("m", footprint=H100)).spec.footprint
        == model("m", footprint=H100).spec.footprint
    )


def test_instances_are_as_declared_where_only_the_gpu_type_differs() -> None:
    stable, declared = model("m", footprint=MEMORY), model("m", footprint={**MEMORY, **H100}, instances=2)
    assert with_declared(stable, declared).spec.instances == 2


def test_another_memory_is_another_revision() -> None:
    more = model("m", footprint={"gpuMemory": "11Gi", **H100})
    assert changed_fields(model("m", footprint=MEMORY), more) == ["footprint"]
    assert revision_of(more) != revision_of(model("m", footprint=MEMORY))
    assert (
        with_declared(model("m", footprint=MEMORY), more).spec.footprint
        == model("m", footprint={**MEMORY, **H100}).spec.footprint
    )


def test_where_an_ensemble_runs_is_no_part_of_its_revision() -> None:
    assert revision_of(ensemble("e", "a")) == revision_of(ensemble("e", "a", nodeSelector={"disk": "ssd"}))

"""A real API server takes every object of the golden cases, and gives it back as it was sent."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from e2e.cluster import Cluster
from tests.operator.render.workloads.activators import activators_objects
from tests.operator.render.workloads.cases import CASES, as_text, read_case

from argosy.render.workloads import object_identity


@pytest.fixture(scope="module")
def cluster(control_plane: Cluster) -> Cluster:
    """Return a control plane with the cases' namespaces."""
    for namespace in sorted({read_case(name).pool.namespace for name in CASES}):
        control_plane.apply(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
    return control_plane


def pdb_version(cluster: Cluster) -> str:
    """Return the newest version of PodDisruptionBudget that the API server has."""
    offered = cluster.kubectl("api-versions").split()
    return "policy/v1" if "policy/v1" in offered else "policy/v1beta1"


@pytest.mark.parametrize("name", CASES)
def test_every_object_is_taken_and_returned_unchanged(cluster: Cluster, name: str) -> None:
    objects = read_case(name).objects(pdb_version(cluster))
    words = ("apply", "--server-side", "--field-manager=argosy", "--dry-run=server", "-o", "json", "-f", "-")
    answer = json.loads(cluster.kubectl(*words, stdin=as_text(objects), timeout_s=120))
    result = {object_identity(item): item for item in answer["items"]}
    assert set(result) == {object_identity(item) for item in objects}
    for item in objects:
        assert differences(item, result[object_identity(item)], object_identity(item)) == []


def test_an_activators_objects_are_taken_and_returned_unchanged(cluster: Cluster) -> None:
    objects = tuple(activators_objects(60, pdb_version=pdb_version(cluster)).values())
    words = ("apply", "--server-side", "--field-manager=argosy", "--dry-run=server", "-o", "json", "-f", "-")
    answer = json.loads(cluster.kubectl(*words, stdin=as_text(objects), timeout_s=120))
    result = {object_identity(item): item for item in answer["items"]}
    for item in objects:
        assert differences(item, result[object_identity(item)], object_identity(item)) == []


def test_an_object_that_is_wrong_is_not_taken(cluster: Cluster) -> None:
    """Else the test above would say nothing."""
    (deployment,) = (item for item in read_case("cpu_pool").objects() if item["kind"] == "Deployment")
    wrong = json.loads(json.dumps(deployment))
    wrong["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][0]["name"] = "nowhere"
    done = cluster.kubectl_process("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=json.dumps(wrong))
    assert "volumeMounts" in done.stderr


def differences(sent: Any, got: Any, path: str) -> list[str]:
    """Return the paths of what was sent and is missing or different; what the API server adds is its own."""
    if isinstance(sent, Mapping):
        if not isinstance(got, Mapping):
            return [f"{path}: {sent!r} became {got!r}"]
        return [difference for key in sent for difference in differences(sent[key], got.get(key), f"{path}.{key}")]
    if isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
        pairs = enumerate(zip(sent, got, strict=True))
        return [difference for at, (one, other) in pairs for difference in differences(one, other, f"{path}[{at}]")]
    return [] if sent == got and type(sent) is type(got) else [f"{path}: {sent!r} became {got!r}"]

"""A real API server takes every object of the golden cases, and gives it back as it was sent."""

import json

import pytest
import yaml
from e2e.cluster import Cluster
from e2e.cluster.waiting import wait_for
from tests.operator.render.workloads.activators import activators_objects
from tests.operator.render.workloads.cases import CASES, read_case
from tests.operator.render.workloads.dry_run import changes_by_server
from tests.operator.render.workloads.test_inferencepools import CRD, model, pools_of
from tests.operator.render.workloads.test_placeholders import rendered

from argosy.planning.provisioning.placeholders import Placeholder


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
    assert changes_by_server(cluster, objects) == []


def test_an_activators_objects_are_taken_and_returned_unchanged(cluster: Cluster) -> None:
    objects = tuple(activators_objects(60, pdb_version=pdb_version(cluster)).values())
    assert changes_by_server(cluster, objects) == []


def test_placeholders_are_taken_and_returned_unchanged(cluster: Cluster) -> None:
    any_node = Placeholder("any", 1, (), 1, ("m",))
    assert changes_by_server(cluster, (rendered(), rendered(any_node))) == []


def test_an_inference_pool_is_taken_and_returned_unchanged(cluster: Cluster) -> None:
    cluster.apply(yaml.safe_dump(CRD))
    words = ("wait", "--for=condition=Established", "--timeout=20s", f"crd/{CRD['metadata']['name']}")
    wait_for("the kind", lambda: cluster.kubectl_process(*words).returncode == 0, 60)
    assert changes_by_server(cluster, tuple(pools_of(model(), model("other-llm")))) == []


def test_an_object_that_is_wrong_is_not_taken(cluster: Cluster) -> None:
    """Otherwise the tests above could not fail."""
    (deployment,) = (item for item in read_case("cpu_pool").objects() if item["kind"] == "Deployment")
    wrong = json.loads(json.dumps(deployment))
    wrong["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][0]["name"] = "nowhere"
    done = cluster.kubectl_process("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=json.dumps(wrong))
    assert "volumeMounts" in done.stderr

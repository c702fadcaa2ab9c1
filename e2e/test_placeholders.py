"""A model that fits nowhere gets the node that its placeholder asks for. Nodes, agents and the autoscaler are played;
the API server, its scheduler and controllers, and the operator are real.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.cluster.standins.autoscaler import NodeAutoscaler
from e2e.cluster.standins.fake import FakeKubelets, fake_nodes
from e2e.cluster.standins.gpus import Gpus
from e2e.cluster.waiting import poll
from e2e.declared.resources import API, Body
from e2e.parts.agents import FakeAgents
from e2e.parts.operatorprocess import OperatorProcess
from e2e.starting import started

pytestmark = pytest.mark.timeout(900)

CRDS = Path(__file__).parents[1] / "crds"
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "placeholders"},
    "value": -10,
    "preemptionPolicy": "Never",
}
FURTHER = [f"scaled-{number}" for number in range(1, 9)]
WITHIN_S = 2.0
SETTLES_S = 180.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a control plane with Argosy's CRDs, one node of one GPU, and kubelets of those that will come."""
    with started(Cluster.control_plane, tmp_path_factory.mktemp("placeholders")) as cluster:
        for path in sorted(CRDS.glob("*.yaml")):
            cluster.apply(path.read_text())
        cluster.apply(json.dumps(CLASS))
        names = fake_nodes(cluster, 1, Gpus(1))
        with FakeKubelets(cluster, [*names, *FURTHER]), FakeAgents(cluster):
            yield cluster


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    log = tmp_path_factory.mktemp("logs") / "operator.log"
    with OperatorProcess(cluster, log, "--placeholder-priority-class=placeholders") as operator:
        operator.until("one that leads", operator.leads, SETTLES_S)
        yield operator


def _pool(**autoscaling: int) -> Body:
    spec = {"nodeAutoscaling": autoscaling}
    return {"apiVersion": API, "kind": "ServingPool", "metadata": {"name": "pool"}, "spec": spec}


def _model(name: str) -> Body:
    tensor = {"dataType": "TYPE_FP32", "dims": [16]}
    spec = {
        "poolRef": {"name": "pool"},
        "modelFormat": {"name": "onnx"},
        "version": 1,
        "storageUri": f"s3://models/{name}",
        "footprint": {"gpuMemory": "50Gi"},
        "inputs": [{"name": "x", **tensor}],
        "outputs": [{"name": "y", **tensor}],
    }
    return {"apiVersion": API, "kind": "InferenceModel", "metadata": {"name": name}, "spec": spec}


def _placeholders(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the Pods of placeholders."""
    pods: list[dict[str, Any]] = cluster.read("pods", "-l", "argosy.dev/placeholder")["items"]
    return pods


def _node_of(cluster: Cluster, model: str) -> str:
    """Return the node of a model that is Ready; empty while it is not."""
    status = cluster.read("inferencemodel", model).get("status", {})
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ()))
    return str(status["placement"][0]["node"]) if ready else ""


def _placed(cluster: Cluster, model: str) -> str:
    """Return the message of a model's condition Placed; empty while it has none."""
    conditions = cluster.read("inferencemodel", model).get("status", {}).get("conditions", ())
    return next((str(one["message"]) for one in conditions if one["type"] == "Placed"), "")


def test_a_placeholder_comes_at_once_for_what_fits_nowhere(cluster: Cluster, operator: OperatorProcess) -> None:
    for body in (_pool(), _model("first")):
        cluster.apply(json.dumps(body))
    operator.until("the first model", lambda: bool(_node_of(cluster, "first")), SETTLES_S)
    assert _placeholders(cluster) == []
    began = time.monotonic()
    cluster.apply(json.dumps(_model("second")))
    assert poll(lambda: len(_placeholders(cluster)) == 1, SETTLES_S, every_s=0.05)
    assert time.monotonic() - began < WITHIN_S
    (pod,) = _placeholders(cluster)
    assert "nodeName" not in pod["spec"]
    operator.until("its message", lambda: "It waits for a node: placeholder" in _placed(cluster, "second"), SETTLES_S)


def test_the_node_that_comes_is_used_and_the_placeholder_goes(cluster: Cluster, operator: OperatorProcess) -> None:
    with NodeAutoscaler(cluster, FURTHER, Gpus(1)) as autoscaler:
        operator.until("the second model", lambda: bool(_node_of(cluster, "second")), SETTLES_S)
        operator.until("no placeholder", lambda: not _placeholders(cluster), SETTLES_S)
        assert _node_of(cluster, "second") in autoscaler.added
        assert _node_of(cluster, "first") not in autoscaler.added
        assert len(autoscaler.added) == 1


def test_a_node_of_another_product_is_not_added_and_one_that_is_placed_needs_none(
    cluster: Cluster, operator: OperatorProcess
) -> None:
    with NodeAutoscaler(cluster, FURTHER[1:], Gpus(1, product="NVIDIA-A10", memory_mib=23_028)) as autoscaler:
        cluster.apply(json.dumps(_model("third")))
        operator.until("its placeholder", lambda: len(_placeholders(cluster)) == 1, SETTLES_S)
        assert not poll(lambda: bool(autoscaler.added), 5)
    left = _node_of(cluster, "second")
    cluster.kubectl("delete", "inferencemodel", "second")
    operator.until("the third model", lambda: _node_of(cluster, "third") == left, SETTLES_S)
    operator.until("no placeholder", lambda: not _placeholders(cluster), SETTLES_S)


def test_a_pool_has_no_more_placeholders_than_it_may(cluster: Cluster, operator: OperatorProcess) -> None:
    cluster.apply(json.dumps(_pool(maxPlaceholders=2)))
    for number in range(3):
        cluster.apply(json.dumps(_model(f"further-{number}")))
    operator.until("two", lambda: len(_placeholders(cluster)) == 2, SETTLES_S)
    names = [f"further-{number}" for number in range(3)]
    operator.until("the limit", lambda: any("maxPlaceholders" in _placed(cluster, one) for one in names), SETTLES_S)
    assert len(_placeholders(cluster)) == 2
    cluster.apply(json.dumps(_pool(maxPlaceholders=0)))
    operator.until("none", lambda: not _placeholders(cluster), SETTLES_S)

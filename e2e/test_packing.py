"""Placement on nodes that come and go: 4 played nodes of 2 GPUs, one operator; agents are played, the rest is real.

The tests build on one another, in their order.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.cluster.standins.fake import FakeKubelets, fake_nodes
from e2e.cluster.standins.gpus import Gpus
from e2e.declared.resources import API, Body
from e2e.parts.agents import FakeAgents
from e2e.parts.operatorprocess import OperatorProcess
from e2e.starting import started

CRDS = Path(__file__).parents[1] / "crds"
NODES, GPUS = 4, Gpus(count=2)
CONVERGES_S = 300.0
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a control plane with Argosy's CRDs, nodes and agents."""
    with started(Cluster.control_plane, tmp_path_factory.mktemp("packing")) as cluster:
        for path in sorted(CRDS.glob("*.yaml")):
            cluster.apply(path.read_text())
        names = fake_nodes(cluster, NODES, GPUS)
        with FakeKubelets(cluster, names), FakeAgents(cluster):
            yield cluster


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """Yield an operator that leads, with a pool."""
    with OperatorProcess(cluster, tmp_path_factory.mktemp("logs") / "operator.log") as operator:
        operator.until("its lead", operator.leads, CONVERGES_S)
        _apply(cluster, _pool())
        yield operator


def _pool(**spec: Any) -> Body:
    return {"apiVersion": API, "kind": "ServingPool", "metadata": {"name": "small"}, "spec": spec}


def _model(name: str, memory: str, **spec: Any) -> Body:
    return {
        "apiVersion": API,
        "kind": "InferenceModel",
        "metadata": {"name": name},
        "spec": {
            "poolRef": {"name": "small"},
            "modelFormat": {"name": "onnx"},
            "version": 1,
            "storageUri": f"s3://models/{name}",
            "footprint": {"gpuMemory": memory},
            "inputs": [{"name": "x", "dataType": "TYPE_FP32", "dims": [16]}],
            "outputs": [{"name": "y", "dataType": "TYPE_FP32", "dims": [16]}],
            **spec,
        },
    }


def _apply(cluster: Cluster, *bodies: Body) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text)


def _status(cluster: Cluster, model: str) -> Body:
    status: Body = cluster.read("inferencemodel", model).get("status", {})
    return status


def _nodes_of(cluster: Cluster, model: str) -> list[str]:
    """Return the nodes of a model's replicas that are ready; none unless all are."""
    status = _status(cluster, model)
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ()))
    return sorted(placement["node"] for placement in status.get("placement", ())) if ready else []


def _placed_message(cluster: Cluster, model: str) -> str:
    conditions = _status(cluster, model).get("conditions", ())
    return next((str(one.get("message", "")) for one in conditions if one["type"] == "Placed"), "")


def _until(operator: OperatorProcess, what: str, holds: Callable[[], bool]) -> None:
    operator.until(what, holds, CONVERGES_S)


def _serving_nodes(cluster: Cluster) -> set[str]:
    """Return the nodes with servers' Pods that are not being deleted."""
    pods = cluster.read("pods", "-l", "argosy.dev/server")["items"]
    return {pod["spec"]["nodeName"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def test_a_cordoned_node_keeps_what_it_serves_and_gets_nothing_new(cluster: Cluster, operator: OperatorProcess) -> None:
    _apply(cluster, _model("first", "60Gi"))
    _until(operator, "the first model", lambda: len(_nodes_of(cluster, "first")) == 1)
    (node,) = _nodes_of(cluster, "first")
    cluster.kubectl("cordon", node)
    _apply(cluster, _model("second", "60Gi"))
    _until(operator, "the second model", lambda: len(_nodes_of(cluster, "second")) == 1)
    assert _nodes_of(cluster, "second") != [node]
    assert _nodes_of(cluster, "first") == [node]


def test_a_node_is_drained_and_comes_back(cluster: Cluster, operator: OperatorProcess) -> None:
    (node,) = _nodes_of(cluster, "first")
    cluster.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", timeout_s=CONVERGES_S)
    _until(operator, "the first model elsewhere", lambda: _nodes_of(cluster, "first") not in ([], [node]))
    assert node not in _serving_nodes(cluster)
    others = [f"fake-{number}" for number in range(1, NODES + 1) if f"fake-{number}" != node]
    cluster.kubectl("uncordon", node)
    cluster.kubectl("cordon", *others)
    _apply(cluster, _model("third", "60Gi"))
    _until(operator, "the node that came back", lambda: _nodes_of(cluster, "third") == [node])
    cluster.kubectl("uncordon", *others)


def test_a_node_that_consolidation_leaves_has_no_pod_of_ours(cluster: Cluster, operator: OperatorProcess) -> None:
    for name in ("first", "third"):
        _apply(cluster, _model(name, "30Gi"))
    former = {name: _nodes_of(cluster, name) for name in ("first", "third")}
    assert former["first"] != former["third"]
    _apply(cluster, _pool(packing={"consolidate": "Auto", "consolidateAfter": "1s"}))
    _until(operator, "both on one node", lambda: _nodes_of(cluster, "first") == _nodes_of(cluster, "third") != [])
    (left,) = {node for (node,) in former.values()} - {*_nodes_of(cluster, "first"), *_nodes_of(cluster, "second")}
    _until(operator, "an empty node", lambda: left not in _nodes_with_pods(cluster))


def _nodes_with_pods(cluster: Cluster) -> set[str]:
    """Return the nodes that Pods of the namespace are bound to."""
    pods = cluster.read("pods")["items"]
    return {pod["spec"].get("nodeName", "") for pod in pods}


def test_a_higher_priority_takes_the_last_gpu_and_gives_it_back(cluster: Cluster, operator: OperatorProcess) -> None:
    every = ["first", "second", "third", *(f"low-{number}" for number in range(NODES * GPUS.count - 3))]
    _apply(cluster, _pool(packing={"consolidate": "Off"}), *(_model(name, "60Gi") for name in every))
    _until(operator, "a model on each GPU", lambda: all(_nodes_of(cluster, name) for name in every))

    _apply(cluster, _model("urgent", "60Gi", priority=500))
    _until(operator, "the way out", lambda: "LowerPriority" in _placed_message(cluster, "urgent"))
    assert all(_nodes_of(cluster, name) for name in every)

    _apply(cluster, _pool(packing={"consolidate": "Off", "preemption": "LowerPriority"}))
    _until(operator, "the urgent model", lambda: len(_nodes_of(cluster, "urgent")) == 1)
    losers = [name for name in every if (_status(cluster, name).get("preemptedBy") or {}).get("name") == "urgent"]
    assert len(losers) == 1
    assert "urgent took its place" in _placed_message(cluster, losers[0])
    assert [one["name"] for one in _status(cluster, "urgent")["preempted"]] == losers
    assert all(_nodes_of(cluster, name) for name in every if name not in losers)

    cluster.kubectl("delete", "inferencemodel", "urgent")
    _until(operator, "the loser's return", lambda: len(_nodes_of(cluster, losers[0])) == 1)
    assert _status(cluster, losers[0]).get("preemptedBy") is None

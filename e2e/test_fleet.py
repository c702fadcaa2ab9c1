"""A large fleet: 20 hollow nodes of 8 GPUs, 120 models, two operators. Agents are played; the rest is real.

Twenty kubelets take 1.6 GB: where that is not to be had, they are played as well. The tests build on one another, in
their order.
"""

import functools
import json
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from e2e.cluster import Cluster
from e2e.cluster.standins.fake import FakeKubelets, fake_nodes
from e2e.cluster.standins.gpus import Gpus
from e2e.cluster.standins.hollow import HollowKubelets, start_hollow_nodes, stop_hollow_nodes
from e2e.cluster.standins.hollow_pods import HollowPods
from e2e.declared.resources import API, Body
from e2e.parts.agents import FakeAgents
from e2e.parts.operatorprocess import OperatorProcess
from e2e.starting import started

pytestmark = pytest.mark.timeout(2400)

CRDS = Path(__file__).parents[1] / "crds"
NODES, GPUS, MODELS = 20, 8, 120
MEMORY = 5 * 2**30
"""What has to be free for hollow nodes, in bytes: for their kubelets, and what else a machine does."""
CONVERGES_S = 900.0
"""Operators and nodes share two cores with what else is tested; a slow machine may take several times as long."""
ASK_S = 2.0
"""Reading all models takes much of what the operators and nodes could use."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a control plane, without Argosy's CRDs."""
    with started(Cluster.control_plane, tmp_path_factory.mktemp("fleet")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def operators(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[OperatorProcess]]:
    """Yield two replicas."""
    logs = tmp_path_factory.mktemp("logs")
    with OperatorProcess(cluster, logs / "one.log") as one, OperatorProcess(cluster, logs / "two.log") as two:
        yield [one, two]


@pytest.fixture(scope="module")
def nodes(cluster: Cluster) -> Iterator[list[str]]:
    if psutil.virtual_memory().available < MEMORY or not cluster.binaries.has("kubemark"):
        names = fake_nodes(cluster, NODES, Gpus(count=GPUS))
        with FakeKubelets(cluster, names), FakeAgents(cluster):
            yield names
        return
    names = start_hollow_nodes(cluster, NODES, Gpus(count=GPUS), wave=NODES // 2)
    with HollowPods(cluster), HollowKubelets(cluster, names, Gpus(count=GPUS)), FakeAgents(cluster):
        yield names
    stop_hollow_nodes(cluster, names)


def _model(number: int) -> Body:
    """Return a model of one of three sizes, so that packing has something to do."""
    size = ("15Gi", "30Gi", "60Gi")[number % 3]
    return {
        "apiVersion": API,
        "kind": "InferenceModel",
        "metadata": {"name": f"model-{number}"},
        "spec": {
            "poolRef": {"name": "fleet"},
            "modelFormat": {"name": "onnx"},
            "version": 1,
            "storageUri": f"s3://models/{number}",
            "footprint": {"gpuMemory": size},
            "inputs": [{"name": "x", "dataType": "TYPE_FP32", "dims": [16]}],
            "outputs": [{"name": "y", "dataType": "TYPE_FP32", "dims": [16]}],
        },
    }


def _apply(cluster: Cluster, bodies: list[Body]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text, timeout_s=300)


def _models(cluster: Cluster) -> list[Body]:
    models: list[Body] = cluster.read("inferencemodels")["items"]
    return models


def _is_ready(model: Body) -> bool:
    status = model.get("status", {})
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions", ())
    )
    return ready and status.get("observedGeneration") == model["metadata"]["generation"]


def _placements(cluster: Cluster) -> list[dict[str, Any]]:
    return [placement for model in _models(cluster) for placement in model["status"]["placement"]]


def _all_ready(cluster: Cluster) -> bool:
    return sum(map(_is_ready, _models(cluster))) == MODELS


def test_without_its_crds_an_operator_waits_and_says_so(cluster: Cluster, operators: list[OperatorProcess]) -> None:
    for operator in operators:
        operator.until(
            "the reason", lambda operator=operator: "inferencemodels.argosy.dev" in operator.ask("/readyz")[1]
        )
        assert operator.ask("/readyz")[0] == 503
        assert operator.ask("/healthz")[0] == 200
    for path in sorted(CRDS.glob("*.yaml")):
        cluster.apply(path.read_text())
    for operator in operators:
        operator.until("readiness", functools.partial(_is_up_to_date, operator))
    operators[0].until("one that leads", lambda: len(_leaders(operators)) == 1)


def _leaders(operators: list[OperatorProcess]) -> list[OperatorProcess]:
    return [operator for operator in operators if operator.leads()]


def _leader(operators: list[OperatorProcess]) -> OperatorProcess:
    """Return the one operator that leads, once there is one; those that lost their lease are restarted."""
    operators[0].until("one that leads", lambda: len(_leaders(operators)) == 1, CONVERGES_S)
    return _leaders(operators)[0]


def _is_up_to_date(operator: OperatorProcess) -> bool:
    return operator.ask("/readyz")[0] == 200


def test_models_of_three_sizes_are_served(cluster: Cluster, operators: list[OperatorProcess], nodes: list[str]) -> None:
    spec = {"maxGpusPerServer": GPUS, "packing": {"consolidateAfter": "1s"}}
    pool = {"apiVersion": API, "kind": "ServingPool", "metadata": {"name": "fleet"}, "spec": spec}
    leader = _leader(operators)
    _apply(cluster, [pool, *map(_model, range(MODELS))])
    leader.until("every model Ready", lambda: _all_ready(cluster), CONVERGES_S, ASK_S)
    used = cluster.read("servingpool", "fleet")["status"]["gpus"]["used"]
    # Of a GPU 63.7 GiB are given out: forty hold one of 60 GiB, twenty two of 30, ten four of 15.
    assert 70 <= used <= 76


def test_nothing_is_written_while_nothing_changes(cluster: Cluster, operators: list[OperatorProcess]) -> None:
    leader = _leader(operators)
    _rests(cluster, leader)
    before = _versions(cluster)
    assert _written_in_a_resync(cluster, leader) == {}
    assert _versions(cluster) == before


def test_models_of_a_node_that_is_gone_move(cluster: Cluster, operators: list[OperatorProcess]) -> None:
    gone = _placements(cluster)[0]["node"]
    stop_hollow_nodes(cluster, [gone])
    _leader(operators).until(
        "every model elsewhere",
        lambda: _all_ready(cluster) and gone not in {placement["node"] for placement in _placements(cluster)},
        CONVERGES_S,
        ASK_S,
    )


def test_a_leader_that_is_killed_is_replaced_and_nothing_is_done_twice(
    cluster: Cluster, operators: list[OperatorProcess]
) -> None:
    leader = _leader(operators)
    (other,) = [operator for operator in operators if operator is not leader]
    _rests(cluster, leader)
    before = _versions(cluster)
    leader.kill()
    other.until("the other's lead", other.leads, CONVERGES_S)
    other.until("its first round", lambda: other.rounds() > 0, CONVERGES_S)
    # It applies once what stands there already, to know it from then on.
    assert _written_in_a_resync(cluster, other) == {}
    assert _versions(cluster) == before
    _apply(cluster, [{**_model(0), "spec": {**_model(0)["spec"], "version": 2}}])
    other.until("the new version", lambda: _all_ready(cluster), CONVERGES_S, ASK_S)
    changed = {name for name, version in _versions(cluster).items() if before.get(name) != version}
    assert len([name for name in changed if name.startswith("Deployment/")]) == 0
    assert len([name for name in changed if name.startswith("ConfigMap/")]) <= 2


def _versions(cluster: Cluster) -> dict[str, str]:
    """Return the resourceVersion, which each write changes, of every object that the operator writes.

    Of Deployments, whose status Kubernetes writes, it is all that the operator writes.
    """
    listed = cluster.read("deployments,configmaps,services,inferencemodels,servingpools")["items"]
    return {f"{body['kind']}/{body['metadata']['name']}": _version(body) for body in listed}


def _version(body: Body) -> str:
    if body["kind"] != "Deployment":
        return str(body["metadata"]["resourceVersion"])
    metadata = dict(body["metadata"])
    annotations = {
        name: value for name, value in metadata.pop("annotations", {}).items() if "kubernetes.io" not in name
    }
    written = {name: value for name, value in metadata.items() if name not in ("resourceVersion", "managedFields")}
    return json.dumps([written, annotations, body["spec"]], sort_keys=True)


def _rests(cluster: Cluster, leader: OperatorProcess) -> None:
    """Wait until the operator finds nothing to write: what is Ready may still be followed by what drained, and a pool
    that came to rest by a search for GPUs that could come free.
    """
    leader.until("a search", lambda: _is_searched(cluster), CONVERGES_S)
    leader.until("a round without a write", lambda: not _written_in_a_resync(cluster, leader), CONVERGES_S)


def _is_searched(cluster: Cluster) -> bool:
    return bool(cluster.read("servingpool", "fleet")["status"].get("consolidation", {}).get("nextSearch"))


def _written_in_a_resync(cluster: Cluster, leader: OperatorProcess) -> Counter[str]:
    before = leader.writes()
    _resync(cluster, leader)
    return leader.writes() - before


def _resync(cluster: Cluster, leader: OperatorProcess) -> None:
    """Let the operator look at everything again: a node's label is an event for every pool."""
    before = leader.rounds()
    node = cluster.read("nodes")["items"][0]["metadata"]["name"]
    cluster.kubectl("label", "node", node, f"looked-at=r{secrets.token_hex(4)}", "--overwrite")
    leader.until("another round", lambda: leader.rounds() > before, CONVERGES_S)

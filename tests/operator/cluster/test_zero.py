"""A model that goes to zero and back by itself: the real operator, activator, server and agent on a real API server."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from e2e.cluster import Cluster
from e2e.cluster.standins.fake import FakeKubelets, fake_nodes
from e2e.parts.operatorprocess import OperatorProcess
from tests.acceptance.running import PYTHON
from tests.operator.cluster.containers import Containers, addresses
from tests.operator.cluster.harness import model_body, pool_body
from tritonclient.grpc import InferenceServerClient, InferInput

pytestmark = pytest.mark.timeout(400)
PATIENCE_S = 120.0


@dataclass
class World:
    """The running parts, and what the test does with them."""

    cluster: Cluster
    namespace: str
    containers: Containers
    operator: OperatorProcess
    source: Path

    def declare(self, **spec: Any) -> None:
        """Apply the model."""
        body = model_body(self.namespace, "sleeper")
        tensor = {"dataType": "TYPE_FP32", "dims": [-1]}
        own = {
            "modelFormat": {"name": "python"},
            "storageUri": self.source.as_uri(),
            "maxBatchSize": 8,
            "inputs": [{"name": "X", **tensor}],
            "outputs": [{"name": "Y", **tensor}],
            "minReplicas": 0,
        }
        self.cluster.apply(json.dumps({**body, "spec": {**body["spec"], **own, **spec}}))

    def queued(self) -> int:
        """Return how many requests wait, from the activator's ConfigMap."""
        words = ("configmaps", "-n", self.namespace, "-l", "argosy.dev/activator=pool")
        texts = [
            text
            for item in self.cluster.read(*words)["items"]
            for key, text in item.get("data", {}).items()
            if key.endswith(".held.json")
        ]
        return sum(json.loads(text)["held"].get("sleeper", 0) for text in texts)

    def servers(self) -> list[Any]:
        """Return the Pods of servers."""
        return self.containers.pods("argosy.dev/server")

    def until(self, what: str, so: Callable[[], bool]) -> None:
        """Wait for a condition. Raises AssertionError with all logs after `PATIENCE_S`."""
        try:
            self.operator.until(what, so, PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.containers.logs()}") from None

    def send(self, workers: ThreadPoolExecutor) -> list["Future[float]"]:
        """Send a request by each protocol to the Service."""
        self.until("the Service has an endpoint", lambda: bool(self.containers.service("sleeper")))
        address = self.containers.service("sleeper")[0]
        return [workers.submit(ask_http, address), workers.submit(ask_grpc, address)]


def ask_http(address: str) -> float:
    body = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [4.0]}]}
    answer = httpx.post(f"http://{address}:8000/v2/models/sleeper/infer", json=body, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    return float(answer.json()["outputs"][0]["data"][0])


def ask_grpc(address: str) -> float:
    tensor = InferInput("X", [1, 1], "FP32")
    tensor.set_data_from_numpy(np.array([[4.0]], np.float32))
    with InferenceServerClient(f"{address}:8001") as client:
        return float(client.infer("sleeper", [tensor], client_timeout=PATIENCE_S).as_numpy("Y")[0, 0])


@pytest.fixture
def world(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[World]:
    """Yield a pool on one node without GPUs, and an operator."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "model.py").write_text(PYTHON.replace("FACTOR", "2.0").replace("BODY", "pass"))
    (tmp_path / "containers").mkdir()
    own = fake_nodes(cluster, 1, prefix=f"n{namespace}-")
    names = [item["metadata"]["name"] for item in cluster.read("nodes")["items"]]  # of other tests, too
    here = {"nodeSelector": {"kubernetes.io/hostname": own[0]}}  # others' nodes may have GPUs
    spec = {**here, "storage": {"allowedFolders": [str(source)]}}
    cluster.apply(json.dumps(pool_body(namespace) | {"spec": spec}))
    with (
        FakeKubelets(cluster, names, addresses()),
        Containers(cluster, namespace, tmp_path / "containers") as containers,
        OperatorProcess(cluster, tmp_path / "operator.log") as operator,
    ):
        yield World(cluster, namespace, containers, operator, source)
        cluster.kubectl("delete", "inferencemodels,servingpools", "-n", namespace, "--all")
    cluster.kubectl("delete", "node", *own)


def test_to_zero_and_back_by_itself(world: World) -> None:
    world.declare(maxReplicas=1, scaling={"idleTimeout": "5s", "scaleDown": {"stabilizationWindow": "5s"}})
    for _ in range(2):
        world.until("no server", lambda: not world.servers() and bool(world.containers.service("sleeper")))
        with ThreadPoolExecutor(2) as workers:
            requested = world.send(workers)
            assert [item.result() for item in requested] == [8.0, 8.0], world.containers.logs()
        world.until("no request waits", lambda: world.queued() == 0)


def test_the_operator_is_killed_while_requests_wait(world: World, cluster: Cluster, tmp_path: Path) -> None:
    world.declare(replicas=0)
    with ThreadPoolExecutor(2) as workers:
        requested = world.send(workers)
        world.until("two that wait", lambda: world.queued() == 2)
        world.operator.kill()
        world.declare(replicas=1)
        with OperatorProcess(cluster, tmp_path / "another.log"):
            assert [item.result() for item in requested] == [8.0, 8.0], world.containers.logs()


def test_a_model_that_does_not_fit_reports_why_requests_waited(world: World) -> None:
    world.declare(replicas=1, footprint={"gpus": 4}, scaling={"holdTimeout": "2s"})
    world.until("the activator", lambda: bool(world.containers.service("sleeper")))
    body = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [4.0]}]}
    address = world.containers.service("sleeper")[0]

    def says_why() -> bool:
        """Return whether the answers give the reason: on a busy machine the first may be sent before the plan."""
        answer = httpx.post(f"http://{address}:8000/v2/models/sleeper/infer", json=body, timeout=PATIENCE_S)
        assert answer.status_code == 503
        error = answer.json()["error"]
        assert "model 'sleeper' was not ready within 2 s" in error
        return "GPU" in error

    world.until("the reason", says_why)

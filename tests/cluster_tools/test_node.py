"""A real node: an image built here runs in pods, is reached as pods are, and leaves nothing behind."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.cluster import Cluster, ClusterUnavailableError
from e2e.cluster.images import buildah
from e2e.cluster.node import network
from e2e.cluster.node.node import NAME
from e2e.cluster.standins.gpus import Gpus, offer_gpus
from e2e.cluster.waiting import wait_for
from e2e.starting import started

TAG = "localhost/argosy-e2e-greeter:1"
DOCKERFILE = """\
ARG BASE=python:3.11-slim
FROM ${BASE}
RUN python -m venv /greeter && /greeter/bin/pip install --no-cache-dir pyyaml && /greeter/bin/python -c "import yaml"
COPY index.html /site/index.html
USER 65532
WORKDIR /site
CMD ["/greeter/bin/python", "-m", "http.server", "8080"]
"""
GREETER = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: greeter, namespace: default}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: greeter}}}}
  template:
    metadata: {{labels: {{app: greeter}}}}
    spec:
      nodeSelector: {{nvidia.com/gpu.product: Test-GPU}}
      containers:
      - name: main
        image: {TAG}
        imagePullPolicy: Never
        resources: {{limits: {{nvidia.com/gpu: "1"}}}}
        readinessProbe: {{httpGet: {{path: /, port: 8080}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {{name: greeter, namespace: default}}
spec: {{selector: {{app: greeter}}, ports: [{{port: 80, targetPort: 8080, protocol: TCP}}]}}
"""
ASK = "import sys, urllib.request; print(urllib.request.urlopen(f'http://{sys.argv[1]}/', timeout=30).read().decode())"

pytestmark = pytest.mark.timeout(900)


def rules() -> str:
    saved = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    return "\n".join(line for line in saved.splitlines() if line.startswith("-A"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with started(Cluster.with_node, folder) as cluster:
        yield cluster
    assert cluster.processes.all() == []
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "logs", "pids"]
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    assert not Path(f"/sys/class/net/{network.BRIDGE}").exists()
    assert "KUBE-" not in rules()
    assert network.MARK not in rules()
    assert not list(network.CNI_RESULTS.glob(f"{network.MARK}-*"))


@pytest.fixture(scope="module")
def greeter(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the cluster IP of two pods that say hello."""
    context = tmp_path_factory.mktemp("context")
    (context / "Dockerfile").write_text(DOCKERFILE)
    (context / "index.html").write_text("hello from a pod")
    assert cluster.node is not None
    buildah.build(context / "Dockerfile", context, TAG)
    buildah.load(TAG, cluster.node.containerd)
    offer_gpus(cluster, NAME, Gpus(2, "Test-GPU", 24_576, (8, 9)))
    cluster.apply(GREETER)
    cluster.kubectl("rollout", "status", "deployment/greeter", "--timeout=120s", timeout_s=150)
    address: str = cluster.read("service", "greeter")["spec"]["clusterIP"]
    return address


def test_a_pod_is_reached_by_service_from_another_pod(cluster: Cluster, greeter: str) -> None:
    ask = ("exec", "deployment/greeter", "--", "/greeter/bin/python", "-c", ASK, greeter)
    # kube-proxy writes the service's rules a moment after the pods are ready.
    wait_for("an answer", lambda: cluster.kubectl_process(*ask).stdout.strip() == "hello from a pod", 60)


def test_the_address_of_no_service_leads_nowhere(cluster: Cluster, greeter: str) -> None:
    done = cluster.kubectl_process(
        "exec", "deployment/greeter", "--", "/greeter/bin/python", "-c", ASK, "10.96.255.254"
    )
    assert "Connection refused" in done.stderr


def test_a_pods_log_can_be_read(cluster: Cluster, greeter: str) -> None:
    wait_for("the probe's line in the log", lambda: "GET / HTTP" in cluster.kubectl("logs", "deployment/greeter"), 60)


def test_gpus_on_paper_are_all_that_pods_get(cluster: Cluster, greeter: str) -> None:
    cluster.kubectl("scale", "deployment/greeter", "--replicas=3")

    def refused() -> bool:
        pods = cluster.read("pods", "-l", "app=greeter")["items"]
        conditions = [item for pod in pods for item in pod["status"].get("conditions", ())]
        return any("Insufficient nvidia.com/gpu" in item.get("message", "") for item in conditions)

    wait_for("the third pod to find no GPU", refused, 60)
    cluster.kubectl("scale", "deployment/greeter", "--replicas=2")


def test_starting_it_again_changes_nothing(cluster: Cluster, greeter: str) -> None:
    before = cluster.status()
    again = Cluster.with_node(cluster.folder)
    assert again.status() == before
    assert again.read("service", "greeter")["spec"]["clusterIP"] == greeter


def test_a_second_node_is_refused_with_the_way_out(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(ClusterUnavailableError, match=f"down --folder {cluster.folder}"):
        Cluster.with_node(tmp_path)


def test_the_node_of_a_cluster_that_died_is_taken_over(cluster: Cluster, greeter: str, tmp_path: Path) -> None:
    """As after a restart of the machine during a test run: no process stops the old cluster."""
    for process, _ in cluster.status():
        os.kill(process.pid, signal.SIGKILL)
    with started(Cluster.with_node, tmp_path) as heir:
        assert heir.kubectl("get", "pods", "--all-namespaces", "--output=name") == ""
        assert not cluster.processes.all()
        assert Cluster.attach(cluster.folder) is None

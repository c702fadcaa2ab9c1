"""A real control plane: it starts, keeps its data over a restart, knows its users, plays nodes, and goes away whole."""

from collections.abc import Iterator

import pytest
from e2e.cluster import Cluster
from e2e.cluster.standins.fake import FakeKubelets, fake_nodes
from e2e.cluster.standins.gpus import Gpus
from e2e.cluster.waiting import wait_for
from e2e.starting import started

POD = """
apiVersion: v1
kind: Pod
metadata: {name: wants-gpus, namespace: default}
spec:
  nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: "8"}}}]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with started(Cluster.control_plane, folder) as cluster:
        yield cluster
    assert cluster.processes.all() == []
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "logs", "pids"]


def test_the_api_server_comes_back_with_its_data(cluster: Cluster) -> None:
    cluster.kubectl("create", "namespace", "kept")
    server = cluster.server
    cluster.stop_apiserver()
    assert not cluster.ready()
    cluster.start_apiserver()
    assert cluster.server == server
    assert cluster.read("namespace", "kept")["status"]["phase"] == "Active"


def test_users_have_the_rights_that_rbac_gives_their_group(cluster: Cluster) -> None:
    access = cluster.as_user(cluster.user_kubeconfig("joe", "readers"))
    assert "Forbidden" in access.kubectl_process("get", "pods").stderr
    cluster.kubectl("create", "clusterrolebinding", "readers", "--clusterrole=view", "--group=readers")
    wait_for("joe's right to read", lambda: access.kubectl_process("get", "pods").returncode == 0, 60)
    account = cluster.as_user(cluster.service_account_kubeconfig("default", "default"))
    assert "system:serviceaccount:default:default" in account.kubectl_process("get", "pods").stderr


def test_an_earlier_cluster_is_detected_by_its_folder(cluster: Cluster) -> None:
    again = Cluster.attach(cluster.folder)
    assert again is not None
    assert again.ready()
    assert {process.name for process, alive in again.status() if alive} == {
        "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
    }  # fmt: skip


def test_the_scheduler_schedules_by_gpus_and_the_loop_plays_the_kubelet(cluster: Cluster) -> None:
    big = fake_nodes(cluster, 2, Gpus(8))
    fake_nodes(cluster, 2, Gpus(4), prefix="small")
    with FakeKubelets(cluster, big):
        cluster.apply(POD)
        cluster.kubectl("wait", "--for=condition=Ready", "pod/wants-gpus", "--timeout=60s", timeout_s=90)
        pod = cluster.read("pod", "wants-gpus")
        assert pod["spec"]["nodeName"] in big
        assert pod["status"]["phase"] == "Running"
        cluster.kubectl("delete", "pod", "wants-gpus", "--timeout=60s", timeout_s=90)

"""Fake nodes: Node objects without a kubelet, and a loop that plays all their kubelets. For benchmarks.

Costs nothing but API calls: no process per node, no probe, no lease. What a kubelet would do to a pod, this does at
once: Running and Ready when bound, gone when deleted. `hollow.py` has nodes with real kubelets.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from kubernetes import watch
from kubernetes.client.exceptions import ApiException

from e2e.cluster.access import Access
from e2e.cluster.background import Background
from e2e.cluster.client import core
from e2e.cluster.standins.gpus import Gpus

RESOURCES = {"cpu": "128", "memory": "2Ti", "ephemeral-storage": "10Ti", "pods": "110"}
WATCH_S = 2


def fake_nodes(access: Access, count: int, gpus: Gpus | None = None, *, prefix: str = "fake") -> list[str]:
    """Create `count` Ready nodes with `gpus` each and return their names.

    They stay Ready on a cluster of `Cluster.control_plane`, whose controllers wait a day for a heartbeat.
    """
    api = core(access)
    names = [f"{prefix}-{number}" for number in range(1, count + 1)]
    for name in names:
        api.create_node(node(name, gpus))
        # Ready only through the status: its creation drops it.
        api.patch_node_status(name, {"status": node_status(gpus, datetime.now(UTC))})
    return names


def node(name: str, gpus: Gpus | None) -> dict[str, Any]:
    """Return a Node object without status."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | (gpus.labels() if gpus else {})},
    }


def node_status(gpus: Gpus | None, now: datetime) -> dict[str, Any]:
    """Return a Ready node's status."""
    resources = RESOURCES | (gpus.resources() if gpus else {})
    stamp = now.isoformat()
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played by a loop",
             "lastHeartbeatTime": stamp, "lastTransitionTime": stamp}  # fmt: skip
    return {"capacity": resources, "allocatable": resources, "conditions": [ready]}


def running_status(pod: dict[str, Any], address: str, now: datetime) -> dict[str, Any]:
    """Return the status of a pod (as JSON) whose containers all run and are ready, init containers done."""
    stamp = now.isoformat()
    kinds = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": stamp, "finishedAt": stamp}}
    spec = pod["spec"]
    return {
        "phase": "Running",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": stamp} for kind in kinds],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": stamp,
        "containerStatuses": [
            _container(container, {"running": {"startedAt": stamp}}) for container in spec["containers"]
        ],
        "initContainerStatuses": [_container(container, ended) for container in spec.get("initContainers") or ()],
    }


def _container(container: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    return {"name": container["name"], "image": container["image"], "imageID": "", "ready": True, "started": True,
            "restartCount": 0, "state": state}  # fmt: skip


def addresses() -> Iterator[str]:
    """Yield Pod addresses, each once, from a range that no pod network here uses."""
    for number in range(1, 1 << 22):
        yield f"10.{128 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


class FakeKubelets(Background):
    """The loop behind fake nodes, in a thread: `with FakeKubelets(access, names): …`. Pods get these addresses."""

    def __init__(self, access: Access, nodes: Iterable[str], pod_addresses: Iterator[str] | None = None) -> None:
        self._api = core(access)
        self._nodes = frozenset(nodes)
        self._addresses = pod_addresses or addresses()
        super().__init__(lambda: self.repeat(self._follow))

    def _follow(self) -> None:
        listed: Any = self._api.list_pod_for_all_namespaces()
        for pod in listed.items:
            self._play(pod)
        version = listed.metadata.resource_version
        while not self.stopping.is_set():
            stream = watch.Watch()
            events = stream.stream(
                self._api.list_pod_for_all_namespaces, resource_version=version, timeout_seconds=WATCH_S
            )
            for event in events:
                if event["type"] != "DELETED":
                    self._play(event["object"])
            version = stream.resource_version or version

    def _play(self, pod: Any) -> None:
        if pod.spec.node_name not in self._nodes:
            return
        name, namespace = pod.metadata.name, pod.metadata.namespace
        try:
            if pod.metadata.deletion_timestamp is not None:
                self._api.delete_namespaced_pod(name, namespace, grace_period_seconds=0)
            elif pod.status.phase == "Pending":
                plain = self._api.api_client.sanitize_for_serialization(pod)
                status = running_status(plain, next(self._addresses), datetime.now(UTC))
                self._api.patch_namespaced_pod_status(name, namespace, {"status": status})
        except ApiException as error:
            if error.status != 404:
                raise

"""Hollow nodes: real kubelets (kubemark) whose containers only pretend, for scheduling at a real cluster's size.

Each is a process of about 80 MB; its pods go through a kubelet's whole life and become Running without running, if
`hollow_pods.py` takes out of them what no hollow kubelet can do. For more nodes than memory allows, or where no kubelet
matters, `fake.py` has nodes that are API objects alone.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from e2e.cluster.background import Background
from e2e.cluster.cluster import Cluster
from e2e.cluster.errors import ClusterUnavailableError
from e2e.cluster.node.node import is_ready
from e2e.cluster.standins.gpus import Gpus, offer_gpus
from e2e.cluster.state import free_ports
from e2e.cluster.waiting import wait_for

WAVE = 10
WAVE_TIMEOUT_S = 180.0
_FAULT = b"fatal error: concurrent map"
_LOOK_S = 1.0
_OFFERS = 30
# Every kubemark has its pretended runtime's socket at one fixed path in /tmp, so each gets a /tmp of its own.
OWN_TMP = """set -e
mount --bind "$1" "$0/kubemark"
mount --rbind "$0" /tmp
shift
exec /tmp/kubemark "$@"
"""


def start_hollow_nodes(
    cluster: Cluster,
    count: int,
    gpus: Gpus | None = None,
    *,
    prefix: str = "hollow",
    wave: int = WAVE,
    progress: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Start `count` hollow kubelets, `wave` at a time, wait until they are Ready, and let each offer `gpus`.

    They act with the administrator's rights. Returns the nodes' names. `cluster.down` ends them too.
    """
    if not cluster.binaries.has("kubemark"):
        raise ClusterUnavailableError(f"hollow nodes need kubemark, which {cluster.binaries.folder} lacks")
    names = [f"{prefix}-{number}" for number in range(1, count + 1)]
    for first in range(0, count, wave):
        some = names[first : first + wave]
        ports = iter(free_ports(2 * len(some)))
        for name in some:
            _start(cluster, name, next(ports), next(ports))
        wait_for(f"hollow nodes {', '.join(some)}", partial(_all_ready, cluster, some), WAVE_TIMEOUT_S, 1.0)
        if gpus is not None:
            for name in some:
                offer_gpus(cluster, name, gpus)
        progress(f"{first + len(some)} of {count} hollow nodes ready")
    return names


class HollowKubelets(Background):
    """Starts hollow kubelets again that died of a fault of kubemark's own, as a machine's init system would: what it
    pretends containers with writes one map from several threads. Any other end is left to be found.
    """

    def __init__(self, cluster: Cluster, names: Sequence[str], gpus: Gpus | None = None) -> None:
        super().__init__(self._keep)
        self._cluster, self._names, self._gpus = cluster, names, gpus
        self._seen = dict.fromkeys(names, 0)
        self._offering: dict[str, int] = {}

    def _keep(self) -> None:
        while not self.stopping.wait(_LOOK_S):
            for name in self._names:
                process = self._cluster.processes.get(name)
                if process is not None and not process.alive() and self._has_failed(name, Path(process.log)):
                    _start(self._cluster, name, *free_ports(2))
                    self._offering[name] = _OFFERS
            self._offer()

    def _has_failed(self, name: str, log: Path) -> bool:
        text = log.read_bytes()
        failed = _FAULT in text[self._seen[name] :]
        self._seen[name] = len(text)
        return failed

    def _offer(self) -> None:
        """Offer the nodes' GPUs again: a kubelet that starts may remove them at any time."""
        for name in [name for name, left in self._offering.items() if left > 0]:
            self._offering[name] -= 1
            if self._gpus is not None:
                offer_gpus(self._cluster, name, self._gpus)


def stop_hollow_nodes(cluster: Cluster, names: Sequence[str]) -> None:
    """End the kubelets and delete their nodes; without the deletion they would count as lost after a while."""
    cluster.processes.stop(*names)
    cluster.kubectl("delete", "node", "--ignore-not-found", *names)
    for name in names:
        shutil.rmtree(cluster.folder / "hollow" / name, ignore_errors=True)


def _start(cluster: Cluster, name: str, port: int, read_only_port: int) -> None:
    scratch = cluster.folder / "hollow" / name
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "kubemark").touch()
    shutil.copy(cluster.kubeconfig, scratch / "kubeconfig")
    cluster.processes.start(name, [
        "unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount", "--propagation=private",
        "sh", "-c", OWN_TMP, scratch, cluster.binaries.path("kubemark"),
        "--morph=kubelet", f"--name={name}", "--kubeconfig=/tmp/kubeconfig",
        f"--kubelet-port={port}", f"--kubelet-read-only-port={read_only_port}",
        # It would watch a container runtime that it finds, and report that one's containers.
        "--containerd=/tmp/none", "--docker=unix:///tmp/none",
    ])  # fmt: skip


def _all_ready(cluster: Cluster, names: Sequence[str]) -> bool:
    for name in names:
        cluster.processes.must_live(name)
    return all(is_ready(cluster, name) for name in names)

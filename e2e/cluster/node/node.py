"""A real node: containerd, kubelet and kube-proxy on this machine, as root. One per machine."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.cluster.access import Access
from e2e.cluster.errors import ClusterError, ClusterUnavailableError
from e2e.cluster.node import containerd as runtime
from e2e.cluster.node import network
from e2e.cluster.node.containerd import Containerd
from e2e.cluster.plane.control_plane import ControlPlane
from e2e.cluster.processes import Processes
from e2e.cluster.programs import packages
from e2e.cluster.programs.binaries import NODE as PROGRAMS
from e2e.cluster.programs.binaries import Binaries
from e2e.cluster.state import State, free_ports
from e2e.cluster.waiting import wait_for

NAME = "argosy-node"
POD_LOGS = Path("/var/log/pods")
POD_LOG_LINKS = Path("/var/log/containers")
OWNER = runtime.RUN / "owner"
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
READY_TIMEOUT_S = 180.0


def check_possible(binaries: Binaries) -> None:
    """Raise ClusterUnavailableError where no node can run; install the Debian packages it needs."""
    if os.geteuid() != 0:
        raise ClusterUnavailableError("a real node needs root, for containers, network and iptables")
    if not binaries.has(*PROGRAMS):
        raise ClusterUnavailableError(f"a real node needs {' and '.join(PROGRAMS)}, which {binaries.folder} lacks")
    packages.ensure(packages.NODE)


def owner() -> Path | None:
    """Return the folder of the cluster that has this machine's one node."""
    return Path(OWNER.read_text()) if OWNER.exists() else None


def claim(folder: Path) -> None:
    """Take the machine's one node for this folder; ClusterUnavailableError when another cluster has it."""
    runtime.RUN.mkdir(parents=True, exist_ok=True)
    other = owner()
    if other == folder:
        return
    if other is not None and State.load(other) is not None:
        raise ClusterUnavailableError(
            f"the cluster in {other} has this machine's node; to end it: python -m e2e.cluster down --folder {other}"
        )
    if runtime.pod_processes():
        raise ClusterUnavailableError("another kubelet runs pods on this machine (control group kubepods)")
    OWNER.write_text(str(folder))
    (runtime.RUN / "ip_forward").write_text(FORWARDING.read_text())


@dataclass(frozen=True, slots=True)
class Node:
    """The node of the cluster in `folder`."""

    folder: Path
    plane: ControlPlane
    processes: Processes

    @property
    def containerd(self) -> Containerd:
        return Containerd(self.folder / "containerd", self.folder / "cni", self.processes)

    def start(self, access: Access) -> None:
        """Start what does not run, and wait until the node is Ready; the network must exist."""
        configs = self.folder / "cni"
        configs.mkdir(exist_ok=True)
        (configs / "10-argosy.conflist").write_text(network.cni_config(self.folder / "addresses"))
        self.containerd.start()
        self._start_kubelet()
        self._start_proxy()

        def ready() -> bool:
            for name in ("containerd", "kubelet", "kube-proxy"):
                self.processes.must_live(name)
            return is_ready(access, NAME)

        wait_for(f"node {NAME}", ready, READY_TIMEOUT_S)

    def _start_kubelet(self) -> None:
        binary = self.plane.binaries.path("kubelet")
        kubeconfig = self.plane.client_kubeconfig("kubelet", f"system:node:{NAME}", ("system:nodes",))
        config = self.folder / "kubelet.yaml"
        config.write_text(yaml.safe_dump(kubelet_config(self.plane.authority.certificate)))
        self.processes.start("kubelet", [
            binary, f"--config={config}", f"--kubeconfig={kubeconfig}", f"--root-dir={self.folder / 'kubelet'}",
            f"--cert-dir={self.folder / 'kubelet-certificates'}", f"--hostname-override={NAME}",
            f"--node-ip={network.NODE_ADDRESS}", "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{runtime.SOCKET}", "--register-node=true",
        ])  # fmt: skip

    def _start_proxy(self) -> None:
        kubeconfig = self.plane.client_kubeconfig("kube-proxy", "system:kube-proxy")
        health, metrics = free_ports(2)
        self.processes.start("kube-proxy", [
            self.plane.binaries.path("kube-proxy"), f"--kubeconfig={kubeconfig}", "--proxy-mode=iptables",
            f"--cluster-cidr={network.POD_RANGE}", f"--nodeport-addresses={network.POD_RANGE}",
            f"--hostname-override={NAME}", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0", "--oom-score-adj=0",
            f"--healthz-bind-address=127.0.0.1:{health}", f"--metrics-bind-address=127.0.0.1:{metrics}",
        ])  # fmt: skip

    def remove(self) -> None:
        """End the node and remove every trace: processes, containers, mounts, control groups, network, logs."""
        if owner() != self.folder:
            return
        self.processes.stop("kubelet", "kube-proxy")
        self.containerd.stop()
        network.remove()
        _unmount_below(self.folder, runtime.RUN)
        runtime.remove_cgroups()
        self._remove_pod_logs()
        for name in ("containerd", "cni", "addresses", "kubelet", "kubelet-certificates"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / "kubelet.yaml").unlink(missing_ok=True)
        FORWARDING.write_text((runtime.RUN / "ip_forward").read_text())
        shutil.rmtree(runtime.RUN)

    def _remove_pod_logs(self) -> None:
        pods = self.folder / "kubelet" / "pods"
        for uid in [pod.name for pod in pods.iterdir()] if pods.exists() else []:
            for logs in POD_LOGS.glob(f"*_{uid}"):
                shutil.rmtree(logs)
        for link in POD_LOG_LINKS.glob("*"):
            if link.is_symlink() and not link.exists():
                link.unlink()


def kubelet_config(client_authority: Path) -> dict[str, object]:
    """Return the kubelet's configuration: no eviction for a full disk, no image removed, no cgroup or swap demanded."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": network.NODE_ADDRESS,
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(client_authority)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "24h",
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
    }


def is_ready(access: Access, node: str) -> bool:
    """Return whether the node exists and its Ready condition is True."""
    try:
        conditions = access.read("node", node)["status"].get("conditions", ())
    except ClusterError:
        return False
    return ("Ready", "True") in {(condition["type"], condition["status"]) for condition in conditions}


def _unmount_below(*folders: Path) -> None:
    """Unmount everything below these folders, the deepest first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    below = [point for point in points if any(point.startswith(f"{folder}/") for folder in folders)]
    for point in sorted(below, key=len, reverse=True):
        done = subprocess.run(["umount", "--lazy", point.replace("\\040", " ")], capture_output=True, text=True)
        if done.returncode != 0:
            raise ClusterError(f"cannot unmount {point}: {done.stderr.strip()}")

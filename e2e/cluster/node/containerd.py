"""Our own containerd: its socket, its images, and the end of everything it runs."""

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.node import pause_image
from e2e.cluster.processes import Processes
from e2e.cluster.waiting import poll, wait_for

# Socket paths have little room (108 bytes), and a machine has room for one such node: hence not in the folder.
RUN = Path("/run/argosy-e2e")
SOCKET = RUN / "containerd.sock"
CNI_PLUGINS = "/usr/lib/cni"
CONFIG = """\
version = 2
root = "{folder}/root"
state = "{run}/state"
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE no process may lower its OOM score, and every sandbox would fail.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{cni}"
"""


@dataclass(frozen=True, slots=True)
class Containerd:
    """The container runtime of the node in `folder`; `cni` is the folder with its network's configuration."""

    folder: Path
    cni: Path
    processes: Processes

    def start(self) -> None:
        """Start it, wait until it answers, and give it the pause image."""
        self.folder.mkdir(parents=True, exist_ok=True)
        RUN.mkdir(parents=True, exist_ok=True)
        config = self.folder / "config.toml"
        config.write_text(
            CONFIG.format(
                folder=self.folder, run=RUN, socket=SOCKET, pause=pause_image.NAME, plugins=CNI_PLUGINS, cni=self.cni
            )
        )
        self.processes.start("containerd", ["containerd", f"--config={config}"])

        def answers() -> bool:
            self.processes.must_live("containerd")
            return SOCKET.exists() and _ctr("version").returncode == 0

        wait_for("containerd", answers, 120.0)
        if pause_image.NAME not in self.images():
            self.load(pause_image.write(self.folder / "pause.tar"))

    def images(self) -> list[str]:
        """Return the names of the images that pods can use."""
        return _ctr("images", "list", "--quiet").stdout.split()

    def load(self, archive: Path) -> None:
        """Import an image archive (docker-archive or OCI) for pods."""
        done = _ctr("images", "import", str(archive), timeout_s=600)
        if done.returncode != 0:
            raise ClusterError(f"import of {archive} failed: {done.stderr.strip()}")

    def stop(self) -> None:
        """End containerd, its shims and all that ran in pods, whether or not containerd still runs."""
        self.processes.stop("containerd")
        for pid in _shims():
            _kill(pid)
        if not poll(_no_pod_process_left, 20.0, every_s=0.1):
            raise ClusterError(f"processes of pods do not end: {pod_processes()}")


def _ctr(*words: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    command = ["ctr", f"--address={SOCKET}", "--namespace=k8s.io", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)


def _shims() -> list[int]:
    """Return the pids of the shims that talk to our containerd: they outlive it on purpose."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"containerd-shim" in words[0] and str(SOCKET).encode() in words:
            pids.append(int(entry.name))
    return pids


def pod_processes() -> list[int]:
    """Return the pids of everything in the kubelet's control groups (version 1 or 2), zombies aside."""
    listed: set[int] = set()
    for root in Path("/sys/fs/cgroup").glob("**/kubepods"):
        for procs in root.glob("**/cgroup.procs"):
            try:
                listed.update(int(pid) for pid in procs.read_text().split())
            except OSError:
                continue
    return sorted(listed)


def _no_pod_process_left() -> bool:
    """Kill what runs in the kubelet's control groups; True when nothing did."""
    pids = pod_processes()
    for pid in pids:
        _kill(pid)
    return not pids


def remove_cgroups() -> None:
    """Remove the kubelet's (empty) control groups."""
    for root in Path("/sys/fs/cgroup").glob("**/kubepods"):
        for group in sorted((path for path in root.glob("**/*") if path.is_dir()), reverse=True):
            group.rmdir()
        root.rmdir()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)

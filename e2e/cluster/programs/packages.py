"""Programs that come from the machine's own Debian packages."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.errors import ClusterUnavailableError
from e2e.cluster.state import locked

LOCK = Path("/run/lock/argosy-apt")
POLICY = Path("/usr/sbin/policy-rc.d")


@dataclass(frozen=True, slots=True)
class Package:
    """A Debian package, and a file whose existence shows that it (or a stand-in) is there."""

    name: str
    program: str

    def present(self) -> bool:
        return Path(self.program).exists() if self.program.startswith("/") else shutil.which(self.program) is not None


ETCD = Package("etcd-server", "etcd")
KUBECTL = Package("kubernetes-client", "kubectl")
OPENSSL = Package("openssl", "openssl")
CURL = Package("curl", "curl")
NODE = (
    Package("containerd", "containerd"),
    Package("runc", "runc"),
    Package("containernetworking-plugins", "/usr/lib/cni/bridge"),
    Package("iptables", "iptables"),
    Package("iproute2", "ip"),
    Package("conntrack", "conntrack"),
)
IMAGES = (Package("buildah", "buildah"), Package("debootstrap", "debootstrap"))


def ensure(packages: Iterable[Package]) -> None:
    """Install what is missing; without root or Debian raise ClusterUnavailableError that names the command to run."""
    requested = tuple(packages)
    missing = [package.name for package in requested if not package.present()]
    if not missing:
        return
    command = f"apt-get install {' '.join(missing)}"
    if shutil.which("apt-get") is None:
        raise ClusterUnavailableError(f"missing programs; on Debian they come with `{command}`, and this is no Debian")
    if os.geteuid() != 0:
        raise ClusterUnavailableError(f"missing programs; run, as root: apt-get update && {command}")
    # apt refuses a second one at a time, and by our turn another may have installed them.
    with locked(LOCK):
        missing = [package.name for package in requested if not package.present()]
        if missing:
            _apt("update")
            with _no_service_starts():
                _apt("install", "-y", "--no-install-recommends", *missing)


def _apt(*words: str) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(["apt-get", "-q", *words], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterUnavailableError(f"apt-get {' '.join(words)} failed:\n{(done.stderr or done.stdout)[-1500:]}")


class _no_service_starts:  # noqa: N801 — used as a statement
    """While it lasts, package scripts start no service (etcd, containerd): the cluster starts its own."""

    def __enter__(self) -> None:
        self._ours = not POLICY.exists()
        if self._ours:
            POLICY.write_text("#!/bin/sh\nexit 101\n")
            POLICY.chmod(0o755)

    def __exit__(self, *_: object) -> None:
        if self._ours:
            POLICY.unlink(missing_ok=True)

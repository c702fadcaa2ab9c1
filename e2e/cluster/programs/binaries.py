"""Where Kubernetes' own programs come from.

The programs of one set come from one folder, so that they are of one version; `policy.sources` has the order.
"""

import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path

from e2e.cluster import policy
from e2e.cluster.errors import ClusterUnavailableError
from e2e.cluster.policy import Machine, Source
from e2e.cluster.programs import packages, upstream
from e2e.cluster.programs.debian_build import build_from_debian
from e2e.cluster.state import locked

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "argosy" / "kube"
TARBALL = Path(__file__).parents[3] / "../shared/kube/kubernetes-1.20.2-linux-amd64.tar.xz"
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
NODE = ("kubelet", "kube-proxy")
HOLLOW = ("kubemark",)


@dataclass(frozen=True, slots=True)
class Binaries:
    """One folder of Kubernetes' programs, with etcd and kubectl from there or from the PATH."""

    folder: Path
    source: str
    version: tuple[int, int]

    def path(self, program: str) -> Path:
        """Return the program's path. Raises ClusterUnavailableError."""
        own = self.folder / program
        if own.exists():
            return own
        installed = shutil.which(program)
        if installed is None or program in CONTROL_PLANE + NODE + HOLLOW:
            raise ClusterUnavailableError(f"no {program} in {self.folder} (from {self.source})")
        return Path(installed)

    def has(self, *programs: str) -> bool:
        return all((self.folder / program).exists() for program in programs)


def find(*programs: str, build: bool = False) -> Binaries:
    """Return the first set with the control plane and `programs`; install etcd, kubectl and openssl when missing.

    `build` (or ARGOSY_KUBE_BUILD=1, or CI=true) allows the build from Debian's sources, about ten minutes. Raises
    ClusterUnavailableError that names every location that was searched. One process at a time searches: it may install
    them.
    """
    required = CONTROL_PLANE + programs
    machine = Machine.here()
    machine = replace(machine, build=machine.build or build)
    looked: list[str] = []
    with locked(CACHE):
        for source in policy.sources(machine, node=bool(programs)):
            try:
                folder = _folder(source)
            except ClusterUnavailableError as error:
                looked.append(f"{source}: {error}")
                continue
            missing = [program for program in required if not (folder / program).exists()]
            if not missing:
                _ensure_companions(folder)
                return Binaries(folder, source, _version(folder / "kube-apiserver"))
            looked.append(f"{source}: {folder} lacks {', '.join(missing)}")
    raise ClusterUnavailableError(
        f"no Kubernetes programs on this machine: {'; '.join(looked)}; KUBEBUILDER_ASSETS names a folder that has them,"
        " or ARGOSY_KUBE_BUILD=1 builds them from Debian's sources in about ten minutes, as root"
    )


_failures: dict[Source, str] = {}
"""What was tried in vain and takes long: not tried again by this process."""


def _folder(source: Source) -> Path:
    """Return the folder of a source's programs, downloaded or built if necessary."""
    if source in _failures:
        raise ClusterUnavailableError(_failures[source])
    try:
        match source:
            case Source.ASSETS:
                return Path(os.environ["KUBEBUILDER_ASSETS"])
            case Source.CACHE:
                return CACHE / "bin"
            case Source.TARBALL:
                return _unpack()
            case Source.UPSTREAM:
                return upstream.download(CACHE)
            case Source.DEBIAN:
                return build_from_debian(CACHE)
    except ClusterUnavailableError as error:
        if source in (Source.UPSTREAM, Source.DEBIAN):
            _failures[source] = str(error)
        raise


def _unpack() -> Path:
    if not TARBALL.exists():
        raise ClusterUnavailableError(f"no {TARBALL.name}")
    target = CACHE / "bin"
    partial = CACHE / f"bin.{os.getpid()}"
    partial.mkdir(parents=True)
    try:
        with tarfile.open(TARBALL) as tarball:
            tarball.extractall(partial, filter="data")
        if target.exists():
            for file in partial.iterdir():
                file.rename(target / file.name)
        else:
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _ensure_companions(folder: Path) -> None:
    companions = (packages.ETCD, packages.KUBECTL)
    absent = [package for package in companions if not (folder / package.program).exists()]
    packages.ensure([*absent, packages.OPENSSL])


def parse_version(text: str) -> tuple[int, int]:
    """Return (major, minor) of what `kube-apiserver --version` prints."""
    match = re.search(r"v(\d+)\.(\d+)", text)
    if match is None:
        raise ClusterUnavailableError(f"no version in {text!r}")
    return int(match[1]), int(match[2])


def _version(apiserver: Path) -> tuple[int, int]:
    try:
        done = subprocess.run([apiserver, "--version"], capture_output=True, text=True, timeout=30)
    except OSError as error:
        raise ClusterUnavailableError(f"{apiserver} does not run here: {error}") from error
    return parse_version(done.stdout)

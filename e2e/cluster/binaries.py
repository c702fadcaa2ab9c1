"""Where Kubernetes' own programs come from.

The programs of one set come from one folder, so that they are of one version. The order: `$KUBEBUILDER_ASSETS`, the
cache, a tarball beside the repository, upstream's download (control plane only), and, when asked for by name, a build
from Debian's sources.
"""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import packages, upstream
from e2e.cluster.debian_build import build_from_debian
from e2e.cluster.errors import ClusterUnavailableError

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "argosy" / "kube"
TARBALL = Path(__file__).parents[2] / "../shared/kube/kubernetes-1.20.2-linux-amd64.tar.xz"
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
        """The program's path, or ClusterUnavailableError."""
        beside = self.folder / program
        if beside.exists():
            return beside
        found = shutil.which(program)
        if found is None or program in CONTROL_PLANE + NODE + HOLLOW:
            raise ClusterUnavailableError(f"no {program} in {self.folder} (from {self.source})")
        return Path(found)

    def has(self, *programs: str) -> bool:
        return all((self.folder / program).exists() for program in programs)


def find(*programs: str, build: bool = False) -> Binaries:
    """The first set that holds the control plane and `programs`; etcd, kubectl and openssl are installed when missing.

    `build` (or ARGOSY_KUBE_BUILD=1) allows the build from Debian's sources, about ten minutes. Raises
    ClusterUnavailableError that names every place that was looked at.
    """
    wanted = CONTROL_PLANE + programs
    looked: list[str] = []
    for source, produce in _sources(wanted, build or os.environ.get("ARGOSY_KUBE_BUILD") == "1"):
        try:
            folder = produce()
        except ClusterUnavailableError as error:
            looked.append(f"{source}: {error}")
            continue
        missing = [program for program in wanted if not (folder / program).exists()]
        if not missing:
            _ensure_companions(folder)
            return Binaries(folder, source, _version(folder / "kube-apiserver"))
        looked.append(f"{source}: {folder} lacks {', '.join(missing)}")
    raise ClusterUnavailableError(
        "no Kubernetes programs on this machine:\n  "
        + "\n  ".join(looked)
        + "\n  ARGOSY_KUBE_BUILD=1 (or `up --build`) builds them from Debian's sources in about ten minutes, as root"
    )


def _sources(wanted: tuple[str, ...], build: bool) -> Iterator[tuple[str, Callable[[], Path]]]:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        yield "KUBEBUILDER_ASSETS", lambda: Path(assets)
    yield "cache", lambda: CACHE / "bin"
    yield "tarball", _unpack
    if build:
        yield "Debian's sources", lambda: build_from_debian(CACHE)
    elif wanted == CONTROL_PLANE:
        yield "upstream", lambda: upstream.download(CACHE)


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
    """(major, minor) of what `kube-apiserver --version` prints."""
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

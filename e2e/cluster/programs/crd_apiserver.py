"""The API server of custom resources of a current Kubernetes, and an etcd that is new enough for it.

It is Kubernetes' own code for CRDs (schemas, CEL, defaults, ratcheting, server-side apply) with a main of ours, and no
core API behind it. Both come from Debian's newest suite, of which nothing is installed: packages are unpacked into a
folder.
"""

import lzma
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.errors import ClusterUnavailableError
from e2e.cluster.policy import Machine
from e2e.cluster.programs.binaries import CACHE
from e2e.cluster.programs.debian_archive import configured_mirror
from e2e.cluster.state import locked

SUITE = "sid"
TARBALL = Path(__file__).parents[3] / "../shared/kube/crd-apiserver-1.36.4-linux-amd64.xz"
SOURCES = Path(__file__).parent / "sources"
COMPILER = ("golang-1.26-go", "golang-1.26-src")
GOROOT = "usr/lib/go-1.26"
VERSION = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True)
class CrdPrograms:
    """The server, and its etcd."""

    server: Path
    etcd: Path


def find(folder: Path = CACHE / "crd-apiserver") -> CrdPrograms:
    """Return the programs in `folder`, brought there where they are missing. Raises ClusterUnavailableError with the
    cause.

    The server is unpacked from its tarball, or built from Debian's sources where ARGOSY_KUBE_BUILD=1 or CI=true allows
    it: 120 MB of downloads, 2.4 GB of disk while it lasts and seven minutes of one core.
    """
    programs = CrdPrograms(folder / "crd-apiserver", folder / "etcd")
    with locked(folder):
        if not programs.server.exists():
            _bring_server(programs.server)
        if not programs.etcd.exists():
            with tempfile.TemporaryDirectory(dir=folder, prefix="etcd-") as scratch:
                _unpack_packages(Path(scratch), ["etcd-server"])
                _put(Path(scratch) / "usr/bin/etcd", programs.etcd)
    return programs


def _bring_server(target: Path) -> None:
    machine = Machine.here()
    if not TARBALL.exists() and not machine.build and not machine.ci:
        raise ClusterUnavailableError(
            f"no {target}, and no {TARBALL.name}; ARGOSY_KUBE_BUILD=1 builds it from Debian's sources in seven minutes"
        )
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as folder:
        made = Path(folder) / target.name
        if TARBALL.exists():
            with lzma.open(TARBALL) as packed, made.open("wb") as file:
                shutil.copyfileobj(packed, file)
        else:
            _build(Path(folder), made)
        _put(made, target)


def _build(folder: Path, made: Path) -> None:
    names = (SOURCES / "crd_apiserver_packages.txt").read_text().split()
    release = kubernetes_version(_unpack_packages(folder, [*COMPILER, *names]))
    (folder / "cmd").mkdir()
    shutil.copy(SOURCES / "crd_apiserver.go", folder / "cmd/main.go")
    settings = {"GO111MODULE": "off", "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "", "CGO_ENABLED": "0",
                "GOROOT": str(folder / GOROOT), "GOPATH": str(folder / "usr/share/gocode"),
                "GOCACHE": str(folder / "cache")}  # fmt: skip
    major, minor, _ = release.split(".", 2)
    flags = f"-s -w -X {VERSION}.gitVersion=v{release} -X {VERSION}.gitMajor={major} -X {VERSION}.gitMinor={minor}"
    # Other programs are brought meanwhile, and what they do is short.
    go = ("nice", "-n", "19", str(folder / GOROOT / "bin/go"))
    _run(*go, "build", "-trimpath", "-ldflags", flags, "-o", str(made), "cmd/main.go", cwd=folder, env=settings)


def kubernetes_version(packages: Iterable[str]) -> str:
    """Return the version of Kubernetes of the server: package 0.36.4 is Kubernetes 1.36.4."""
    for package in packages:
        if match := re.match(r"golang-k8s-apiextensions-apiserver-dev_0\.(\d+\.\d+)[-~+]", package):
            return f"1.{match[1]}"
    raise ClusterUnavailableError(f"{SUITE} has no package of Kubernetes' API server for custom resources")


def _unpack_packages(folder: Path, names: list[str]) -> list[str]:
    """Unpack Debian packages below `folder` and return their files' names; the machine's own stay as they are."""
    if shutil.which("apt-get") is None:
        raise ClusterUnavailableError(
            "Kubernetes' API server for custom resources comes from Debian, and this is no Debian"
        )
    mirror = configured_mirror()
    signed = f"[signed-by={mirror.keyring}] " if mirror.keyring else ""
    (folder / "sources.list").write_text(f"deb {signed}{mirror.uri} {SUITE} main\n")
    (folder / "apt/lists/partial").mkdir(parents=True)
    debs = folder / "debs"
    debs.mkdir()
    words = {"Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
             "Dir::State::Lists": folder / "apt/lists", "Dir::Cache": folder / "apt", "APT::Sandbox::User": "root",
             "Acquire::Languages": "none", "Acquire::Retries": "3"}  # fmt: skip
    apt = ["apt-get", "-q", *(word for key, value in words.items() for word in ("-o", f"{key}={value}"))]
    _run(*apt, "update", cwd=debs)
    _run(*apt, "download", *(f"{name}/{SUITE}" for name in names), cwd=debs)
    archives = sorted(debs.iterdir())
    for package in archives:
        _run("dpkg-deb", "--extract", str(package), str(folder), cwd=folder)
    return [package.name for package in archives]


def _put(made: Path, target: Path) -> None:
    made.chmod(0o755)
    made.rename(target)


def _run(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterUnavailableError(f"{words[0]} failed:\n{(done.stderr or done.stdout)[-3000:]}")

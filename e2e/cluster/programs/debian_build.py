"""The build of Kubernetes from Debian's own source package, for machines that reach Debian but not upstream.

About ten minutes, 34 MB of sources and 6 GB of disk while it lasts; as root, because it installs a Go compiler.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from e2e.cluster.errors import ClusterUnavailableError
from e2e.cluster.programs import packages
from e2e.cluster.programs.debian_archive import SUITE, configured_mirror
from e2e.cluster.programs.packages import Package

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubemark")
VERSION = "v1.20.2"
REFLECT2 = Path("/usr/share/gocode/src/github.com/modern-go/reflect2")
TOOLS = (
    Package("golang-go", "go"),
    Package("make", "make"),
    Package("rsync", "rsync"),
    Package("jq", "jq"),
    Package("dpkg-dev", "dpkg-source"),
    Package("golang-github-modern-go-reflect2-dev", str(REFLECT2)),
)
OUTPUT = Path("_output/local/bin/linux/amd64")
SOURCES = """\
Types: deb-src
URIs: {uri}
Suites: {suite}
Components: main
{signed}
"""


def build_from_debian(cache: Path) -> Path:
    """Build every program into `cache`/bin and return that folder; raises ClusterUnavailableError with the reason."""
    packages.ensure(TOOLS)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="build-") as folder:
        tree = _fetch(Path(folder))
        _replace_reflect2(tree)
        settings = {"KUBE_GIT_VERSION": VERSION, "KUBE_GIT_MAJOR": "1", "KUBE_GIT_MINOR": "20",
                    "KUBE_GIT_TREE_STATE": "archive", "GO111MODULE": "off", "GOPATH": folder,
                    "GOCACHE": f"{folder}/cache"}  # fmt: skip
        _run("make", f"WHAT={' '.join(f'cmd/{program}' for program in PROGRAMS)}", cwd=tree, env=settings)
        target = cache / "bin"
        target.mkdir(exist_ok=True)
        for program in PROGRAMS:
            shutil.copy2(tree / OUTPUT / program, target / f".{program}.new")
            (target / f".{program}.new").rename(target / program)
    return target


def _fetch(folder: Path) -> Path:
    """Return the source tree where Go expects it below GOPATH=`folder`; apt's own settings stay as they are."""
    mirror = configured_mirror()
    signed = f"Signed-By: {mirror.keyring}" if mirror.keyring else ""
    sources = folder / "debian.sources"
    sources.write_text(SOURCES.format(uri=mirror.uri, suite=SUITE, signed=signed))
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    options = ["-o", f"Dir::Etc::SourceList={sources}", "-o", "Dir::Etc::SourceParts=-", "-o",
               f"Dir::State::Lists={lists}", "-o", "APT::Sandbox::User=root"]  # fmt: skip
    _run("apt-get", *options, "update", cwd=folder)
    _run("apt-get", *options, "source", "kubernetes", cwd=folder)
    (unpacked,) = [path for path in folder.glob("kubernetes-*") if path.is_dir()]
    tree = folder / "src/k8s.io/kubernetes"
    tree.parent.mkdir(parents=True)
    unpacked.rename(tree)
    return tree


def _replace_reflect2(tree: Path) -> None:
    """Put Debian's reflect2 for the vendored one, with which the API server dies when built with Go 1.18 or newer."""
    vendored = tree / "vendor/github.com/modern-go/reflect2"
    for old in [*vendored.glob("*.go"), *vendored.glob("*.s")]:
        old.unlink()
    for new in [*REFLECT2.glob("*.go"), *REFLECT2.glob("*.s")]:
        if not new.name.endswith("_test.go"):
            shutil.copy(new, vendored)


def _run(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterUnavailableError(f"{words[0]} {words[1]} failed:\n{(done.stderr or done.stdout)[-3000:]}")

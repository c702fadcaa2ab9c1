"""The control plane as upstream publishes it, for machines with an open internet.

Not kubelet and kube-proxy: a recent kubelet expects a machine (systemd, cgroup v2) that our node is not.
"""

import hashlib
import os
import platform
import shutil
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

from e2e.cluster.errors import ClusterUnavailableError

VERSION = "v1.31.0"
RELEASES = "https://dl.k8s.io/release"
# etcd, kube-apiserver and kubectl, as controller-runtime's setup-envtest installs them.
ENVTEST = "https://github.com/kubernetes-sigs/controller-tools/releases/download"
CONNECT_TIMEOUT_S = 5.0


def download(cache: Path) -> Path:
    """Return the folder with the downloaded control plane; ClusterUnavailableError where upstream is out of reach."""
    target = cache / f"upstream-{VERSION}"
    if target.exists():
        return target
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine())
    if arch is None:
        raise ClusterUnavailableError(f"upstream publishes nothing for {platform.machine()}")
    partial = cache / f"upstream-{VERSION}.{os.getpid()}"
    partial.mkdir(parents=True)
    try:
        for program in ("kube-controller-manager", "kube-scheduler"):
            _fetch_checked(f"{RELEASES}/{VERSION}/bin/linux/{arch}/{program}", partial / program, "sha256", 64)
        _fetch_envtest(partial, arch)
        partial.rename(target)
    except (urllib.error.URLError, OSError, tarfile.TarError) as error:
        raise ClusterUnavailableError(f"download from upstream failed: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _fetch_envtest(folder: Path, arch: str) -> None:
    name = f"envtest-{VERSION}-linux-{arch}.tar.gz"
    archive = folder / name
    _fetch_checked(f"{ENVTEST}/envtest-{VERSION}/{name}", archive, "sha512", 128)
    with tarfile.open(archive) as tarball:
        for member in tarball:
            if member.isfile():
                member.name = Path(member.name).name
                tarball.extract(member, folder, filter="data")
    archive.unlink()


def _fetch_checked(url: str, path: Path, algorithm: str, digits: int) -> None:
    """Fetch `url` and compare it with the digest that is published next to it."""
    with urllib.request.urlopen(f"{url}.{algorithm}", timeout=CONNECT_TIMEOUT_S) as answer:
        published = answer.read().decode()[:digits]
    with urllib.request.urlopen(url, timeout=CONNECT_TIMEOUT_S) as answer, path.open("wb") as file:
        shutil.copyfileobj(answer, file)
    with path.open("rb") as file:
        if hashlib.file_digest(file, algorithm).hexdigest() != published:
            raise ClusterUnavailableError(f"{url} does not match its published {algorithm}")
    path.chmod(0o755)

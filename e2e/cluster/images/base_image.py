"""The image that stands in for `python:3.11-slim`: Debian bookworm with its own Python 3.11, from the machine's mirror.

Made without a registry, kept as an archive in the cache under a key of its recipe.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from e2e.cluster.errors import ClusterError, ClusterUnavailableError
from e2e.cluster.programs import packages
from e2e.cluster.programs.binaries import CACHE
from e2e.cluster.programs.debian_archive import SUITE, Mirror, configured_mirror

NAMES = ("docker.io/library/python:3.11-slim", "localhost/python:3.11-slim")
INCLUDE = "python3,python3-venv,python3-pip,ca-certificates"
DOCKERFILE = """\
FROM scratch
ADD rootfs.tar /
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
CMD ["python3"]
"""
_DROPPED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale")


def key() -> str:
    """Return a digest of the image's recipe."""
    return hashlib.sha256(f"{SUITE} {INCLUDE} {_DROPPED} {DOCKERFILE}".encode()).hexdigest()[:12]


def root_filesystem() -> Path:
    """Return the tar of the image's files, from the cache or made now by debootstrap (about a minute, as root)."""
    cached = CACHE / "images" / f"python-3.11-{key()}.tar"
    if cached.exists():
        return cached
    if os.geteuid() != 0:
        raise ClusterUnavailableError("the base image is made by debootstrap, which needs root")
    packages.ensure(packages.IMAGES)
    mirror = configured_mirror()
    cached.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cached.parent) as folder:
        root = Path(folder) / "root"
        _debootstrap(root, mirror)
        _make_like_python_image(root)
        partial = Path(folder) / "root.tar"
        _run("tar", "--numeric-owner", "--one-file-system", "-cf", str(partial), "-C", str(root), ".")
        partial.rename(cached)
    return cached


def _debootstrap(root: Path, mirror: Mirror) -> None:
    keyring = [f"--keyring={mirror.keyring}"] if mirror.keyring else []
    _run("debootstrap", "--variant=minbase", f"--include={INCLUDE}", *keyring, SUITE, str(root), mirror.uri)


def _make_like_python_image(root: Path) -> None:
    """Let `python` and `pip` work, and let pip install for every user, as in the official image."""
    for name, target in (("python", "/usr/bin/python3"), ("python3", "/usr/bin/python3"), ("pip", "/usr/bin/pip3")):
        (root / "usr/local/bin" / name).symlink_to(target)
    (root / "usr/lib/python3.11/EXTERNALLY-MANAGED").unlink()
    for name in _DROPPED:
        shutil.rmtree(root / name, ignore_errors=True)
    for folder in ("var/cache/apt/archives/partial", "var/lib/apt/lists/partial"):
        (root / folder).mkdir(parents=True)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(f"{words[0]} failed:\n{(done.stderr or done.stdout)[-1500:]}")

"""Images without a registry: built by buildah from the project's Dockerfiles, handed to the node's containerd."""

import fcntl
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from argosy_common import pip_settings
from e2e.cluster.errors import ClusterError, ClusterUnavailableError
from e2e.cluster.images import base_image
from e2e.cluster.node.containerd import Containerd
from e2e.cluster.programs import packages
from e2e.cluster.programs.binaries import CACHE

STORE = CACHE / "buildah"
BUILD_TIMEOUT_S = 1800.0
RETAINED_LAYERS = 8
"""Ends of former builds that the next ones may begin from, hundreds of megabytes each."""
UNSEALED = "sealing memfd copy: Device or resource busy"
"""How a step ends that never began: buildah runs each from a copy of itself in memory, and could not seal that, since
the kernel held a page of it just then.
"""
TRIES = 5


def ensure_base() -> None:
    """Create the image that stands in for `python:3.11-slim` under that name, from the cache or built now."""
    _check_possible()
    keyed = f"localhost/argosy-e2e-base:{base_image.key()}"
    if exists(keyed):
        return
    with _alone():
        if not exists(keyed):
            _make_base(keyed)


def _make_base(keyed: str) -> None:
    files = base_image.root_filesystem()
    with tempfile.TemporaryDirectory(dir=CACHE) as context:
        os.link(files, Path(context) / "rootfs.tar")
        dockerfile = Path(context) / "Dockerfile"
        dockerfile.write_text(base_image.DOCKERFILE)
        tags = [f"--tag={name}" for name in (*base_image.NAMES, keyed)]
        _bud(*tags, f"--file={dockerfile}", context)


def build(dockerfile: Path, context: Path, tag: str, build_args: Mapping[str, str] | None = None) -> str:
    """Build an image; the unchanged layers come from the cache of earlier builds. Returns the image's id.

    `FROM python:3.11-slim` finds the stand-in; nothing is pulled. pip and uv in the build see this machine's package
    index, certificates and proxy through mounts, of which nothing but empty mount points stays in the image. Raises
    ClusterError with the build's last lines.
    """
    ensure_base()
    settings = pip_settings.of_machine()
    args = [f"--build-arg={key}={value}" for key, value in (build_args or {}).items()]
    with tempfile.TemporaryDirectory() as folder:
        mounts = []
        for text, mount in ((settings.config, "/etc/pip.conf"), (settings.uv, "/etc/uv/uv.toml")):
            config = Path(folder) / Path(mount).name
            config.write_text(text)
            mounts.append(f"--volume={config}:{mount}:ro")
        mounts += [f"--volume={mount}:{mount}:ro" for mount in settings.folders]
        if pip_settings.CERTIFICATES.exists():
            mounts.append(f"--volume={pip_settings.CERTIFICATES.resolve()}:{pip_settings.CERTIFICATES}:ro")
        with _alone():
            names = (f"--tag={tag}", f"--file={dockerfile}")
            _bud("--layers", "--jobs=2", "--pull=never", *mounts, *args, *names, str(context))
    return _buildah("inspect", "--type=image", "--format={{.FromImageID}}", tag).strip()


def exists(tag: str) -> bool:
    """Return whether an image of this name was built."""
    return _buildah_ok("inspect", "--type=image", tag)


def remove_others(tag: str) -> None:
    """Remove what was built under the same name with other tags, and layers that nothing else is made of.

    What cannot be removed now, because something runs from it or a build goes on, stays for the next time.
    """
    try:
        with _alone(fcntl.LOCK_NB):
            _remove_others(tag)
    except BlockingIOError:
        return


def _remove_others(tag: str) -> None:
    name = tag.rpartition(":")[0]
    listed = _buildah("images", "--format={{.Name}}:{{.Tag}}").split()
    others = [image for image in listed if image.startswith(f"{name}:") and image != tag]
    for image in others:
        _buildah_ok("rmi", image)


def trim() -> None:
    """Drop the oldest layers that no image is made of: what is left of builds a while ago.

    During a build, another process's too, they stay for the next time.
    """
    try:
        with _alone(fcntl.LOCK_NB):
            _drop_oldest_layers()
    except BlockingIOError:
        return


def _drop_oldest_layers() -> None:
    listed = json.loads(_buildah("images", "--json", "--filter=dangling=true"))
    old = sorted(listed, key=lambda image: int(image["created"]))[:-RETAINED_LAYERS]
    if old:
        # With one go those that it was made from, so some are gone by their turn; what a container uses stays.
        _buildah_ok("rmi", *(image["id"] for image in old))


def load(tag: str, containerd: Containerd) -> None:
    """Give a built image to the node under the same name, for pods with `imagePullPolicy: Never` or IfNotPresent."""
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        archive = Path(folder) / "image.tar"
        _buildah("push", tag, f"docker-archive:{archive}:{tag}")
        containerd.load(archive)


@contextmanager
def _locked(how: int) -> Iterator[None]:
    with (CACHE / "images.lock").open("w") as file:
        fcntl.flock(file, how)
        yield


def _alone(how: int = 0) -> AbstractContextManager[None]:
    """Hold the lock of builds, in this process or another: two at once take cached layers from under each other.

    With LOCK_NB raise BlockingIOError where a build runs.
    """
    return _locked(fcntl.LOCK_EX | how)


def _check_possible() -> None:
    if os.geteuid() != 0:
        raise ClusterUnavailableError("image builds need root here")
    packages.ensure(packages.IMAGES)
    CACHE.mkdir(parents=True, exist_ok=True)


def _command(*words: str) -> list[str]:
    return ["buildah", f"--root={STORE}/root", f"--runroot={STORE}/run", "--storage-driver=overlay", *words]


def _buildah_ok(*words: str) -> bool:
    return subprocess.run(_command(*words), capture_output=True).returncode == 0


def _bud(*words: str) -> None:
    """Build, and once more from the layers there are where a step could not begin."""
    for left in reversed(range(TRIES)):
        try:
            _buildah("bud", "--isolation=chroot", "--format=docker", *words)
        except ClusterError as error:
            if UNSEALED not in str(error) or not left:
                raise
        else:
            return


def _buildah(*words: str) -> str:
    done = subprocess.run(_command(*words), capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
    if done.returncode != 0:
        raise ClusterError(f"buildah {words[0]} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout

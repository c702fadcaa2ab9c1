"""Peers' files, fetched once: a folder per peer and version, made next to its target and renamed to it.

Two processes may build the same peer at once; the second to finish throws its own copy away.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path


class PeerUnavailableError(Exception):
    """A peer cannot be had on this machine; the message says exactly why."""


def cache_root() -> Path:
    """Return the folder of every peer; ARGOSY_PEERS_CACHE overrides it."""
    override = os.environ.get("ARGOSY_PEERS_CACHE")
    return Path(override) if override else Path.home() / ".cache" / "argosy" / "peers"


def installed(name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of the peer `name`, built by `build(folder)` when it is not there yet.

    Raises PeerUnavailableError when it cannot be built; nothing half-made is left in its place.
    """
    target = cache_root() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
    try:
        build(scratch)
        scratch.chmod(0o755)
        _rename_to(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _rename_to(scratch: Path, target: Path) -> None:
    try:
        scratch.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def pip_download(requirement: str, into: Path) -> Path:
    """Download the wheel of `requirement`, without its dependencies, into `into`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--only-binary=:all:", "--dest", str(into)]
    run([*command, *options, requirement], f"pip download {requirement}")
    wheels = sorted(into.glob("*.whl"))
    if len(wheels) != 1:
        raise PeerUnavailableError(f"pip download {requirement} left {len(wheels)} wheels, expected one")
    return wheels[0]


def unpack_wheel(requirement: str, into: Path) -> None:
    """Download `requirement` and unpack its wheel into `into`, executable bits included."""
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        wheel = pip_download(requirement, Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                path = Path(archive.extract(member, into))
                if mode := member.external_attr >> 16:
                    path.chmod(mode & 0o777 | 0o400)


def run(command: list[str], what: str, cwd: Path | None = None, timeout_s: float = 600.0) -> str:
    """Return standard output of `command`. Raises PeerUnavailableError with its last lines when it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise PeerUnavailableError(f"{what}: {failure}") from failure
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise PeerUnavailableError(f"{what} failed with status {done.returncode}: {words}")
    return done.stdout

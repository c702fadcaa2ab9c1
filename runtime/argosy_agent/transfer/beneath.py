"""Files that lie beneath a root, wherever links lead: what leaves the root is neither listed nor read."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import StorageError

EVERYWHERE = Path("/")
"""The root of what may lie anywhere on this machine."""
_DESCRIPTORS = Path("/proc/self/fd")
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def resolved(path: Path, root: Path) -> Path:
    """Return the path that `path` means once every link is followed.

    Raises StorageError for a link that leads nowhere, in a circle or out of `root`; OSError.
    """
    try:
        real = os.path.realpath(path, strict=True)
    except FileNotFoundError:
        if path.is_symlink():
            raise StorageError(f"{path} is a link to {os.readlink(path)}, where nothing is") from None
        raise
    except OSError as error:
        if path.is_symlink():
            raise StorageError(f"{path} is a link that leads nowhere: {error.strerror}") from error
        raise
    _check(real, path, root)
    return Path(real)


def check_kind(status: os.stat_result, path: Path) -> None:
    """Raise StorageError where `path` is neither a file nor a folder, by its status."""
    kind = _KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise StorageError(f"{path} is {kind}, and models are files and folders")


@contextmanager
def opened(path: Path, root: Path) -> Iterator[int]:
    """Open a file to be read, and close it afterwards.

    What was opened is looked at, so a link that is put in its place meanwhile gains nothing. Raises StorageError where
    it lies outside of `root` or is no file; OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _check(_real_path(descriptor, path), path, root)
        check_kind(os.fstat(descriptor), path)
        yield descriptor
    finally:
        os.close(descriptor)


def _real_path(descriptor: int, path: Path) -> str:
    """Return the real path of an open file, as the kernel names it; without /proc that of its name."""
    try:
        return os.readlink(_DESCRIPTORS / str(descriptor))
    except OSError:
        return os.path.realpath(path)


def _check(real: str, path: Path, root: Path) -> None:
    top = os.path.realpath(root)
    if os.path.commonpath([real, top]) != top:
        raise StorageError(f"{path} leads out of {root}; put the file itself there in place of the link")

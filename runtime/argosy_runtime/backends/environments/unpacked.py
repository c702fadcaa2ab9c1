"""Archives of environments, unpacked in the temporary folder: once for all that use them, removed when nothing does.

A user of a folder holds a shared lock on it, which the kernel releases however a process ends. So a folder without a
lock is a leftover, complete or half unpacked by a killed server, and any server of this user may remove it. It is
renamed first, so that nothing takes it while it is removed. On a file system without such locks nothing is removed.

Servers of another release that hold no lock have other names for their folders.
"""

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path

from argosy_common.publishing import publish
from argosy_common.tarballs import extract_all, opened

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL)
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unpacked:
    """A folder with an archive's contents, which stays until `release`."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock = lock

    def release(self) -> None:
        """Release the folder: `remove_unused` may remove it."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def unpack(archive: Path) -> Unpacked:
    """Unpack an archive, unless that has been done for the same path, size and time. Return its folder.

    Raises OSError, and the errors of BROKEN_TAR.
    """
    stat = archive.stat()
    key = hashlib.sha256(f"{archive.resolve()}:{stat.st_size}:{stat.st_mtime_ns}".encode()).hexdigest()[:24]
    target = Path(tempfile.gettempdir()) / f"{_prefix()}{key}"
    while True:
        unpacked = _hold(target) or _unpacked(archive, target)
        if unpacked is not None:
            return unpacked


def remove_unused() -> None:
    """Remove this user's unpacked environments that nothing uses. A folder that cannot be removed stays."""
    for folder in list(Path(tempfile.gettempdir()).glob(f"{_prefix()}*")):
        _remove_if_unused(folder)


def _prefix() -> str:
    return f"argosy-environment-{os.getuid()}-"


def _hold(folder: Path) -> Unpacked | None:
    """Lock a folder against removal, and return it; None where it does not exist. Raises OSError."""
    try:
        _check_owner(folder, folder.lstat())
        lock = os.open(folder, _OPEN)
    except FileNotFoundError:
        return None
    try:
        _check_owner(folder, os.fstat(lock))
        _lock(lock)
        if _is_at(lock, folder):
            return Unpacked(folder, lock)
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _check_owner(folder: Path, status: os.stat_result) -> None:
    if status.st_uid != os.getuid():
        raise PermissionError(f"'{folder}' belongs to another user: have it removed, or set TMPDIR")


def _lock(folder: int) -> None:
    """Lock a folder against removal, where the file system has locks. Raises OSError."""
    try:
        fcntl.flock(folder, fcntl.LOCK_SH)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def _is_at(lock: int, folder: Path) -> bool:
    """Return whether a locked folder is still at its path: it may have been removed before it was locked."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(folder, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _unpacked(archive: Path, target: Path) -> Unpacked | None:
    """Unpack to a temporary folder, and rename that. Return None where another process was faster."""
    partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    unpacked = _hold(partial)
    if unpacked is None:
        return None
    published = False
    try:
        with opened(archive) as contents:
            extract_all(contents, partial)
        published = publish(partial, target)
    finally:
        if not published:
            unpacked.release()
            shutil.rmtree(partial, ignore_errors=True)
    unpacked.folder = target
    return unpacked if published else None


def _remove_if_unused(folder: Path) -> None:
    try:
        lock = os.open(folder, _OPEN)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_uid == os.getuid() and _is_at(lock, folder):
            gone = folder.with_name(f"{folder.name.partition('.')[0]}.{secrets.token_hex(8)}")
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
    except OSError:
        pass  # In use, or on a file system that has no such locks.
    finally:
        os.close(lock)

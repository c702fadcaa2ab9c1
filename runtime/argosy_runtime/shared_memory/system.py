"""System memory of clients, as files of /dev/shm, where `shm_open` has them.

It is read and written by system calls and not mapped: a file that its owner shortens is then an error of the call. An
access to mapped memory would be a SIGBUS, and end the server.
"""

import os
import stat
from typing import Final

from argosy_runtime.errors import FailureReason, internal
from argosy_runtime.tensors import Data

from .checks import check_extent
from .regions import MemoryLostError

FOLDER: Final = "/dev/shm/"
_OPEN: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SHORTER: Final = "its memory object is shorter than it was"


class SystemMemory:
    """A region of an open file, which begins at `base`. It outlives the file's name."""

    def __init__(self, fd: int, base: int) -> None:
        self._fd = fd
        self._base = base

    def read_into(self, offset: int, buffer: memoryview) -> None:
        done = 0
        while done < len(buffer):
            count = os.preadv(self._fd, [buffer[done:]], self._base + offset + done)
            if not count:
                raise MemoryLostError(_SHORTER)
            done += count

    def write(self, offset: int, data: Data) -> None:
        # A write behind the end would make the file longer again.
        if os.fstat(self._fd).st_size < self._base + offset + len(data):
            raise MemoryLostError(_SHORTER)
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += os.pwrite(self._fd, view[done:], self._base + offset + done)

    def close(self) -> None:
        os.close(self._fd)


def open_memory(name: str, key: str, offset: int, size: int) -> SystemMemory:
    """Open the memory object of a key for a region. Raises ServingError, with Triton's messages."""
    fd = _open(key)
    try:
        about = os.fstat(fd)
        available = about.st_size if stat.S_ISREG(about.st_mode) else 0
        check_extent(name, available, offset, size, _PAGE)
    except BaseException:
        os.close(fd)
        raise
    return SystemMemory(fd, offset)


def _open(key: str) -> int:
    bare = key.lstrip("/")
    try:
        if "/" not in bare:
            return os.open(FOLDER + bare, _OPEN)
    except (OSError, ValueError):
        # ValueError: a character that no file's name has.
        pass
    raise internal(f"Unable to open shared memory region: '{key}'", FailureReason.OTHER)

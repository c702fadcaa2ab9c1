"""Memory that the server and a model's process both map.

Large tensors are written there, and frames have their offsets.

Half of it is for each direction, and the writer of a half allocates there. The reader has a piece until the last array
or view over it is gone, and then sends a RELEASE frame. Where a half is full, tensors go by the socket. The memory
cannot change its size, so that no process can take it from the other.
"""

import fcntl
import mmap
import os
import threading
from collections import deque
from typing import Final

from argosy_runtime.tensors import Data
from argosy_runtime.tensors.allocator import Allocator
from argosy_runtime.tensors.pieces import lend

# Bytes for each direction. The system allocates a page once it is written to.
ARENA_SIZE: Final = 64 << 20


class OutgoingTensors:
    """The half that this process writes into. Methods may be called on any thread."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._allocator = Allocator(len(memory))
        self._lock = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """True if the other side has released everything."""
        return self._allocator.is_empty

    def put(self, data: Data) -> int:
        """Write the data. Return its offset; -1 where there is too little memory."""
        with self._lock:
            begin = self._allocator.allocate(len(data))
        if begin >= 0:
            self._memory[begin : begin + len(data)] = data
        return begin

    def close(self) -> None:
        """Write nothing more, and release the memory."""
        self._memory = memoryview(b"")
        self._allocator = Allocator(0)

    def free(self, begin: int) -> bool:
        """Free a piece that the other side has released. Return whether there was one."""
        with self._lock:
            return self._allocator.free(begin)


class IncomingTensors:
    """The half that the other process writes into."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._gone: deque[int] = deque()
        self._lent = 0

    def lend(self, begin: int, size: int) -> memoryview | None:
        """Return the bytes at an offset, which stay as they are as long as a view of them lives.

        None outside the memory.
        """
        if begin < 0 or size <= 0 or begin + size > len(self._memory):
            return None
        self._lent += 1
        return lend(self._memory, begin, size, self._gone)

    def close(self) -> None:
        """Lend nothing more, and release the memory."""
        self._memory = memoryview(b"")

    @property
    def any_lent(self) -> bool:
        """True if the other side has not learnt the end of every lent piece."""
        return self._lent > 0

    @property
    def any_gone(self) -> bool:
        """True if there is a release to send."""
        return bool(self._gone)

    def take_gone(self) -> list[int]:
        """Return the offsets of pieces that are unused now, to send their release."""
        gone = [self._gone.popleft() for _ in range(len(self._gone))]
        self._lent -= len(gone)
        return gone


class Arena:
    """Both halves, as one of the two processes has them; `server`: this is the server."""

    def __init__(self, fd: int, server: bool) -> None:
        memory = memoryview(mmap.mmap(fd, 0))
        half = len(memory) // 2
        mine, other = (memory[:half], memory[half:]) if server else (memory[half:], memory[:half])
        self.outgoing = OutgoingTensors(mine)
        self.incoming = IncomingTensors(other)

    def close(self) -> None:
        """Release the memory, which is freed with the last tensor in it."""
        self.outgoing.close()
        self.incoming.close()


def make_memory(size: int = ARENA_SIZE) -> int:
    """Create memory for an arena of `size` bytes each way. Return its file descriptor. Raises OSError."""
    fd = os.memfd_create("argosy-tensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, 2 * size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(fd)
        raise
    return fd

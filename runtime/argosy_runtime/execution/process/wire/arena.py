"""Memory that the server and a model's process both have mapped: large tensors lie in it, and frames say where.

Half of it is for each direction, and whoever writes into a half says what lies where. The reader has a piece until the
last array or view over it is gone, and then says so in a RELEASE frame. Where a half is full, tensors go by the socket.
The memory cannot change its size, so that no process can take it from under the other.
"""

import fcntl
import mmap
import os
import threading
from collections import deque
from typing import Final

import numpy as np
import numpy.typing as npt

from argosy_runtime.tensors import Data

from .allocator import Allocator

# Bytes for each direction. The system gives memory to what has been written to.
ARENA_SIZE: Final = 64 << 20


class _Piece(npt.NDArray[np.uint8]):
    """A piece that was lent; its end is noticed."""

    begin = -1
    gone: "deque[int] | None" = None

    def __del__(self) -> None:
        # On whatever thread, in the midst of whatever it does.
        if self.gone is not None:
            self.gone.append(self.begin)


class OutgoingTensors:
    """The half that this process writes into. Methods may be called on any thread."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._allocator = Allocator(len(memory))
        self._lock = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """Whether the other side has given everything back."""
        return self._allocator.is_empty

    def put(self, data: Data) -> int:
        """Write the data, and return where it lies; -1 where there is no room."""
        with self._lock:
            begin = self._allocator.take(len(data))
        if begin >= 0:
            self._memory[begin : begin + len(data)] = data
        return begin

    def close(self) -> None:
        """Nothing more is written; the memory is let go of."""
        self._memory = memoryview(b"")
        self._allocator = Allocator(0)

    def give_back(self, begin: int) -> bool:
        """The other side has let go of what lies there; whether anything does."""
        with self._lock:
            return self._allocator.give_back(begin)


class IncomingTensors:
    """The half that the other process writes into."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._gone: deque[int] = deque()
        self._lent = 0

    def lend(self, begin: int, size: int) -> memoryview | None:
        """Lend the bytes there, which stay as they are as long as a view of them is kept. Return None where not so many
        are.
        """
        if begin < 0 or size <= 0 or begin + size > len(self._memory):
            return None
        piece = np.frombuffer(self._memory, np.uint8, size, begin).view(_Piece)
        piece.begin, piece.gone = begin, self._gone
        self._lent += 1
        return piece.data

    def close(self) -> None:
        """Nothing more is lent; the memory is let go of."""
        self._memory = memoryview(b"")

    @property
    def any_lent(self) -> bool:
        """Whether there is anything that the other side was not told the end of."""
        return self._lent > 0

    @property
    def any_gone(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self._gone)

    def take_gone(self) -> list[int]:
        """Take where what is gone lay, to tell the other side."""
        gone = [self._gone.popleft() for _ in range(len(self._gone))]
        self._lent -= len(gone)
        return gone


class Arena:
    """Both halves, as one of the two processes has them: `server` is whether it is the server."""

    def __init__(self, fd: int, server: bool) -> None:
        memory = memoryview(mmap.mmap(fd, 0))
        half = len(memory) // 2
        mine, other = (memory[:half], memory[half:]) if server else (memory[half:], memory[:half])
        self.outgoing = OutgoingTensors(mine)
        self.incoming = IncomingTensors(other)

    def close(self) -> None:
        """Let go of the memory, which goes with the last tensor that lies in it."""
        self.outgoing.close()
        self.incoming.close()


def make_memory(size: int = ARENA_SIZE) -> int:
    """Memory for an arena of `size` bytes each way: its file descriptor. Raises OSError."""
    fd = os.memfd_create("argosy-tensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, 2 * size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(fd)
        raise
    return fd

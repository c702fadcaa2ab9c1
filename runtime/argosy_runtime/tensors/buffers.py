"""Buffers for copies of large tensors, whose memory is used again.

The system clears each page that a process gets, which takes longer than the copy of a tensor into it. Memory that the
allocator of C has given back to the system for each tensor would be such pages, time and again.
"""

from collections import deque
from contextlib import suppress
from typing import Final

import numpy as np

from .allocator import Allocator
from .pieces import lend

# The system allocates a page of it once it is written to.
POOL_SIZE: Final = 64 << 20
# Below this size the allocator of C uses its memory again by itself.
_POOLED_FROM: Final = 1 << 16


class BufferPool:
    """Memory of `size` bytes for buffers. `take` is called on one thread; the last view of a buffer ends on any."""

    def __init__(self, size: int = POOL_SIZE) -> None:
        self._size = size
        self._allocator = Allocator(size)
        self._memory: memoryview | None = None
        self._gone: deque[int] = deque()

    def take(self, size: int) -> memoryview:
        """Return a buffer to be filled, which holds whatever was there before. Raises MemoryError.

        Small ones, and those that the pool has no room for, have memory of their own.
        """
        memory = self._shared() if size >= _POOLED_FROM else None
        begin = -1 if memory is None else self._allocate(size)
        if memory is None or begin < 0:
            return np.empty(size, np.uint8).data
        return lend(memory, begin, size, self._gone)

    def _shared(self) -> memoryview | None:
        """Return the pool's memory, None where the system does not have as much now."""
        if self._memory is None:
            with suppress(MemoryError):
                self._memory = np.empty(self._size, np.uint8).data
        return self._memory

    def _allocate(self, size: int) -> int:
        while self._gone:
            self._allocator.free(self._gone.popleft())
        return self._allocator.allocate(size)

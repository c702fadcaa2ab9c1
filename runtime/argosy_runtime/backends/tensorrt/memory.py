"""A device's memory by addresses, in blocks that are used again."""

import threading
from collections import defaultdict
from contextlib import nullcontext, suppress
from typing import Final

from argosy_runtime.backends.devices.cuda import CudaStream
from argosy_runtime.errors import ServingError

_SMALLEST: Final = 256
_LARGE: Final = 2 << 20
RETAINED: Final = 256 << 20
"""Bytes that an instance retains for later batches; memory beyond that is freed."""


class Block:
    """Bytes of a device, returned to the pool with the last reference. Its address is a multiple of 256."""

    __slots__ = ("_pool", "address", "size")

    def __init__(self, pool: "BlockPool", address: int, size: int) -> None:
        self._pool = pool
        self.address = address
        self.size = size

    def __del__(self) -> None:
        self._pool.release(self.address, self.size)


class BlockPool:
    """Blocks of one instance's device, since allocating on the device waits for all that runs there. Thread-safe.

    A block is released only after the batches that used it, so the next one may write to it at once.
    """

    def __init__(self, stream: CudaStream, retained: int = RETAINED) -> None:
        self._stream = stream
        self._retained = retained
        self._free: dict[int, list[int]] = defaultdict(list)
        self._size = 0
        self._closed = False
        # The garbage collector may release a block while this very thread holds the lock.
        self._lock = threading.RLock()

    def take(self, size: int) -> Block:
        """Return a block of at least `size` bytes. Raises ServingError where the device has too little memory."""
        rounded = _rounded(size)
        with self._lock:
            free = self._free[rounded]
            if free:
                self._size -= rounded
                return Block(self, free.pop(), rounded)
        return Block(self, self._stream.allocate(rounded), rounded)

    def release(self, address: int, size: int) -> None:
        with self._lock:
            if self._size + size <= self._retained:
                self._free[size].append(address)
                self._size += size
                return
        # The device's context may have gone with the instance, and all of its memory.
        with suppress(ServingError) if self._closed else nullcontext():
            self._stream.free(address)

    def close(self) -> None:
        """Free the retained memory; blocks in use are freed with their last reference."""
        with self._lock:
            addresses = [address for free in self._free.values() for address in free]
            self._free.clear()
            self._size, self._retained, self._closed = 0, 0, True
        for address in addresses:
            self._stream.free(address)


def _rounded(size: int) -> int:
    """Return a size that recurs: a power of two, or a multiple of a large one."""
    if size > _LARGE:
        return -(-size // _LARGE) * _LARGE
    return max(_SMALLEST, 1 << max(size - 1, 0).bit_length())


__all__ = ["Block", "BlockPool"]

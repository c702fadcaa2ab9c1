"""A device's memory by addresses, in blocks that are used again."""

import threading
from collections import defaultdict
from contextlib import nullcontext, suppress
from typing import Final

from argosy_runtime.backends.cuda import DeviceHeap
from argosy_runtime.errors import ServingError

_SMALLEST: Final = 256
_LARGE: Final = 2 << 20
RETAINED: Final = 256 << 20
"""Bytes that an instance keeps for later batches; what is more goes back to the device."""


class Block:
    """So many bytes of a device, given back with the last reference to it. Its address is a multiple of 256."""

    __slots__ = ("_pool", "address", "size")

    def __init__(self, pool: "BlockPool", address: int, size: int) -> None:
        self._pool = pool
        self.address = address
        self.size = size

    def __del__(self) -> None:
        self._pool.release(self.address, self.size)


class BlockPool:
    """One instance's memory of its device: to allocate on one waits for all that runs there. Safe from any thread.

    A block is let go of only after the batches that used it, so the next one may write to it at once.
    """

    def __init__(self, heap: DeviceHeap, retained: int = RETAINED) -> None:
        self._heap = heap
        self._retained = retained
        self._free: dict[int, list[int]] = defaultdict(list)
        self._size = 0
        self._closed = False
        # The collector may let go of a block while this very thread is in here.
        self._lock = threading.RLock()

    def take(self, size: int) -> Block:
        """At least so many bytes. Raises ServingError where the device has no room."""
        rounded = _rounded(size)
        with self._lock:
            free = self._free[rounded]
            if free:
                self._size -= rounded
                return Block(self, free.pop(), rounded)
        return Block(self, self._heap.allocate(rounded), rounded)

    def release(self, address: int, size: int) -> None:
        """See `Block`."""
        with self._lock:
            if self._size + size <= self._retained:
                self._free[size].append(address)
                self._size += size
                return
        # With its instance the device's context may have gone, and all of its memory with it.
        with suppress(ServingError) if self._closed else nullcontext():
            self._heap.free(address)

    def close(self) -> None:
        """Keep nothing from now on; what others hold is given back when they let go of it."""
        with self._lock:
            addresses = [address for free in self._free.values() for address in free]
            self._free.clear()
            self._size, self._retained, self._closed = 0, 0, True
        for address in addresses:
            self._heap.free(address)


def _rounded(size: int) -> int:
    """Sizes that come again: powers of two, and steps of a large size."""
    if size > _LARGE:
        return -(-size // _LARGE) * _LARGE
    return max(_SMALLEST, 1 << max(size - 1, 0).bit_length())


__all__ = ["Block", "BlockPool"]

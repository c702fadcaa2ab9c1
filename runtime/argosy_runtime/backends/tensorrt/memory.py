"""A device's memory by addresses: blocks that are used again, and what an engine leaves in one."""

import threading
from collections import defaultdict
from contextlib import nullcontext, suppress
from typing import Final

import numpy as np

from argosy_runtime.backends import dlpack
from argosy_runtime.backends.cuda import DeviceHeap, DeviceStream
from argosy_runtime.device_arrays import DEVICE_COPIES, DeviceMemory
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import Array
from argosy_runtime.modelconfig.datatypes import numpy_dtype

_SMALLEST: Final = 256
_LARGE: Final = 2 << 20
KEPT: Final = 256 << 20
"""Bytes that an instance keeps for later batches; what is more goes back to the device."""


class Block:
    """So many bytes of a device, given back with the last reference to it. Its address is a multiple of 256."""

    __slots__ = ("_pool", "address", "size")

    def __init__(self, pool: "BlockPool", address: int, size: int) -> None:
        self._pool = pool
        self.address = address
        self.size = size

    def __del__(self) -> None:
        self._pool.take_back(self.address, self.size)


class BlockPool:
    """One instance's memory of its device: to allocate on one waits for all that runs there. Safe from any thread.

    A block is let go of only after the batches that used it, so the next one may write to it at once.
    """

    def __init__(self, heap: DeviceHeap, kept: int = KEPT) -> None:
        self._heap = heap
        self._kept = kept
        self._free: dict[int, list[int]] = defaultdict(list)
        self._size = 0
        self._closed = False
        # The collector may let go of a block while this very thread is in here.
        self._lock = threading.RLock()

    def take(self, size: int) -> Block:
        """At least so many bytes. Raises ServingError where the device has no room."""
        whole = _whole(size)
        with self._lock:
            free = self._free[whole]
            if free:
                self._size -= whole
                return Block(self, free.pop(), whole)
        return Block(self, self._heap.allocate(whole), whole)

    def take_back(self, address: int, size: int) -> None:
        """See `Block`."""
        with self._lock:
            if self._size + size <= self._kept:
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
            self._size, self._kept, self._closed = 0, 0, True
        for address in addresses:
            self._heap.free(address)


def _whole(size: int) -> int:
    """Sizes that come again: powers of two, and steps of a large size."""
    if size > _LARGE:
        return -(-size // _LARGE) * _LARGE
    return max(_SMALLEST, 1 << max(size - 1, 0).bit_length())


class BlockMemory(DeviceMemory):
    """What an engine left in a block."""

    def __init__(self, block: Block, size: int, datatype: str, device: tuple[int, int], stream: DeviceStream) -> None:
        self.block = block
        self._size = size
        self._datatype = datatype
        self._device = device
        self._stream = stream

    def read(self, offset: int, count: int) -> Array:
        """See `DeviceMemory`."""
        target = np.empty(count, numpy_dtype(self._datatype))
        DEVICE_COPIES.fetched(target.nbytes)
        self._stream.copy(target.ctypes.data, self.block.address + offset * target.itemsize, target.nbytes)
        self._stream.synchronize()
        return target

    def __dlpack__(self, *, stream: object = None) -> object:
        return dlpack.capsule(self.block.address, self._size, self._device, self.block)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


__all__ = ["Block", "BlockMemory", "BlockPool"]

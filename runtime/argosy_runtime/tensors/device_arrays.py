"""Arrays that stay in a device's memory from one model to the next, and the counters of copies there and back.

An array can be read at once and from any stream, because a model's work on it is over when the model answers. Another
framework uses it without a copy by DLPack (https://dmlc.github.io/dlpack/latest/).
"""

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


@dataclass(slots=True)
class Transfers:
    """The number of arrays copied in one direction, and their bytes."""

    arrays: int = 0
    bytes: int = 0


@dataclass(slots=True)
class DeviceTransfers:
    """The copies of this process between its own memory and its devices'. Any thread may add to them."""

    to_host: Transfers = field(default_factory=Transfers)
    to_device: Transfers = field(default_factory=Transfers)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fetched(self, size: int) -> None:
        """Count an array of `size` bytes that was copied to the host."""
        self._add(self.to_host, size)

    def sent(self, size: int) -> None:
        """Count an array of `size` bytes that was copied to a device."""
        self._add(self.to_device, size)

    def _add(self, transfers: Transfers, size: int) -> None:
        with self._lock:
            transfers.arrays += 1
            transfers.bytes += size


DEVICE_TRANSFERS = DeviceTransfers()


class DeviceMemory(ABC):
    """A block of one framework's memory, C-contiguous, which lives as long as this object."""

    @abstractmethod
    def read(self, offset: int, count: int) -> Array:
        """Return `count` elements from `offset` on, as a flat array on the host. Counts the copy."""

    @abstractmethod
    def __dlpack__(self, *, stream: object = None) -> object:
        """Return the block as one tensor of any shape."""

    @abstractmethod
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type, and the device's index."""


class DeviceArray:
    """`shape` elements of a block, from element `offset` on."""

    __slots__ = ("_host", "memory", "offset", "shape")

    def __init__(self, memory: DeviceMemory, shape: tuple[int, ...], offset: int = 0) -> None:
        self.memory = memory
        self.shape = shape
        self.offset = offset
        self._host: Array | None = None

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    def __getitem__(self, rows: slice) -> "DeviceArray":
        """Return rows of the first dimension, over the same memory."""
        start, stop, step = rows.indices(self.shape[0])
        if step != 1:
            raise ValueError(f"rows are taken one after the other, not every {step}")
        inner = self.shape[1:]
        return DeviceArray(self.memory, (max(stop - start, 0), *inner), self.offset + start * prod(inner))

    def reshape(self, shape: tuple[int, ...]) -> "DeviceArray":
        """Return the same elements in another shape. Raises ValueError where that has more or fewer."""
        if prod(shape) != self.size:
            raise ValueError(f"cannot reshape {self.size} elements into {list(shape)}")
        return DeviceArray(self.memory, shape, self.offset)

    def host(self) -> Array:
        """Return the array on the host, to which it is copied once."""
        host = self._host
        if host is None:
            host = self._host = self.memory.read(self.offset, self.size).reshape(self.shape)
        return host


__all__ = ["DEVICE_TRANSFERS", "DeviceArray", "DeviceTransfers", "DeviceMemory"]

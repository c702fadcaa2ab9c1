"""Arrays that stay in a device's memory from one model to the next, and how often one is copied there or back.

What is here can be read at once and from any stream: a model's work on it is over when the model answers. Another
framework takes it without a copy by DLPack (https://dmlc.github.io/dlpack/latest/).
"""

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


@dataclass(slots=True)
class Copies:
    """How many arrays went one way, and their bytes."""

    arrays: int = 0
    bytes: int = 0


@dataclass(slots=True)
class DeviceCopies:
    """What this process has copied between its own memory and its devices'. Safe to add to from any thread."""

    to_host: Copies = field(default_factory=Copies)
    to_device: Copies = field(default_factory=Copies)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fetched(self, size: int) -> None:
        """An array of `size` bytes came to the host."""
        self._add(self.to_host, size)

    def sent(self, size: int) -> None:
        """An array of `size` bytes went to a device."""
        self._add(self.to_device, size)

    def _add(self, copies: Copies, size: int) -> None:
        with self._lock:
            copies.arrays += 1
            copies.bytes += size


DEVICE_COPIES = DeviceCopies()


class DeviceMemory(ABC):
    """A block of one framework's memory, C-contiguous, kept for as long as somebody holds this."""

    @abstractmethod
    def read(self, offset: int, count: int) -> Array:
        """So many elements from `offset` on, as a flat array on the host; counted by whoever copies."""

    @abstractmethod
    def __dlpack__(self, *, stream: object = None) -> object:
        """Return the whole block, as one tensor of any shape."""

    @abstractmethod
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's device type, and which of them."""


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
        """Rows of the first dimension, over the same memory."""
        start, stop, step = rows.indices(self.shape[0])
        if step != 1:
            raise ValueError(f"rows are taken one after the other, not every {step}")
        inner = self.shape[1:]
        return DeviceArray(self.memory, (max(stop - start, 0), *inner), self.offset + start * prod(inner))

    def reshape(self, shape: tuple[int, ...]) -> "DeviceArray":
        """Return the same elements in another shape. Raises ValueError where they are more or fewer."""
        if prod(shape) != self.size:
            raise ValueError(f"cannot reshape {self.size} elements into {list(shape)}")
        return DeviceArray(self.memory, shape, self.offset)

    def host(self) -> Array:
        """On the host, where it is kept from then on."""
        host = self._host
        if host is None:
            host = self._host = self.memory.read(self.offset, self.size).reshape(self.shape)
        return host


__all__ = ["DEVICE_COPIES", "Copies", "DeviceArray", "DeviceCopies", "DeviceMemory"]

"""A device that is none: this machine's own memory, which the backends treat as a GPU's."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from argosy_runtime.backends.onnxruntime.binding import Device
from argosy_runtime.tensors.device_arrays import DEVICE_TRANSFERS

CPU = (1, 0)
"""What DLPack calls it."""


@dataclass
class FakeStream:
    """Copies at once, which a session of the host, that waits for no stream, needs."""

    handle: int = 77
    copied: list[int] = field(default_factory=list)
    allocated: list[int] = field(default_factory=list)
    closed: bool = False

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)
        self.copied.append(size)

    def pinned(self, size: int) -> np.ndarray:
        self.allocated.append(size)
        return np.zeros(size, np.uint8)

    def synchronize(self) -> None:
        """Return at once: there is nothing to wait for."""

    def close(self) -> None:
        self.closed = True


def fake_device(stream: FakeStream) -> Device:
    """Return a device in the place of an instance's GPU."""
    return Device("cpu", 0, CPU, stream)


@dataclass
class TransferCounts:
    """Arrays that were copied within a block of `count_transfers`."""

    to_device: int = 0
    to_host: int = 0


@contextmanager
def count_transfers() -> Iterator[TransferCounts]:
    """Count the arrays that are copied within the block."""
    before = (DEVICE_TRANSFERS.to_device.arrays, DEVICE_TRANSFERS.to_host.arrays)
    counts = TransferCounts()
    yield counts
    counts.to_device = DEVICE_TRANSFERS.to_device.arrays - before[0]
    counts.to_host = DEVICE_TRANSFERS.to_host.arrays - before[1]

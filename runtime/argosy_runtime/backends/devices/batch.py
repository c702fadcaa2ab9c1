"""A batch's way to a device and back, for frameworks that take and return addresses.

A framework with tensors of its own (PyTorch) moves these itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from typing import TypeAlias

import numpy as np
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.batching import Output, joined_shape
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.modelconfig.datatypes import element_size, numpy_dtype
from argosy_runtime.tensors.device_arrays import DEVICE_TRANSFERS, DeviceArray, DeviceMemory

from . import dlpack, staging
from .cuda import DeviceStream

Allocate: TypeAlias = Callable[[int], tuple[int, object]]
"""Allocates a number of bytes on the device; returns their address and their owner."""


@dataclass(frozen=True, slots=True)
class DeviceInput:
    """An input of a run at an address of the device; `owner` keeps the memory, `datatype` is a V2 name."""

    address: int
    shape: tuple[int, ...]
    datatype: str
    owner: object


class AddressedMemory(DeviceMemory):
    """A model's output of `size` bytes at an address of its device; `owner` keeps the memory."""

    def __init__(
        self, address: int, size: int, datatype: str, device: tuple[int, int], stream: DeviceStream, owner: object
    ) -> None:
        self.address = address
        self.dtype = numpy_dtype(datatype)
        self._size = size
        self._device = device
        self._stream = stream
        self._owner = owner

    def read(self, offset: int, count: int) -> Array:
        """Copy elements to the host, and wait for them."""
        target = np.empty(count, self.dtype)
        DEVICE_TRANSFERS.fetched(target.nbytes)
        self._stream.copy(target.ctypes.data, self.address + offset * target.itemsize, target.nbytes)
        self._stream.synchronize()
        return target

    def __dlpack__(self, *, stream: object = None) -> object:
        # As bytes: not every framework takes every type, BOOL for one.
        return dlpack.capsule(self.address, self._size, self._device, self._owner)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


class DeviceBatch:
    """Inputs joined on one instance's device, and outputs copied to the host, on the instance's stream.

    `device` is DLPack's type and ordinal. Inputs that are on the device already are used where they are if their
    address is a multiple of `alignment`.
    """

    def __init__(
        self,
        config: ModelConfig,
        device: tuple[int, int],
        stream: DeviceStream,
        allocate: Allocate,
        alignment: int = 1,
    ) -> None:
        self._device = device
        self._stream = stream
        self._allocate = allocate
        self._alignment = alignment
        self._incoming, self._outgoing = staging.buffers(config.optimization, stream.pinned)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Surround one run; at its end the device is through with the batch."""
        try:
            yield
        finally:
            self._stream.synchronize()
            self._incoming.reset()
            self._outgoing.reset()

    def gather(self, tensors: Sequence[Tensor], *, scalar: bool) -> DeviceInput:
        """Return the tensors joined along the first dimension; one element without any dimension if `scalar`."""
        joined = self._aligned(tensors[0]) if len(tensors) == 1 else None
        joined = joined or self._joined(tensors)
        return replace(joined, shape=()) if scalar and prod(joined.shape) == 1 else joined

    def _aligned(self, tensor: Tensor) -> DeviceInput | None:
        """Return a tensor that is on the device at an aligned address, None where it is not."""
        present = self._present(tensor)
        return None if present is None or present.address % self._alignment else present

    def _present(self, tensor: Tensor) -> DeviceInput | None:
        """Return a tensor that is on the device already, None where it is not."""
        array = tensor.device
        if array is None or array.memory.__dlpack_device__() != self._device:
            return None
        memory = array.memory
        start, owner = (memory.address, memory) if isinstance(memory, AddressedMemory) else dlpack.address_of(memory)
        offset = array.offset * (element_size(tensor.datatype) or 0)
        return DeviceInput(start + offset, tensor.shape, tensor.datatype, owner)

    def _joined(self, tensors: Sequence[Tensor]) -> DeviceInput:
        """Begin to copy the tensors one after the other into new memory of the device."""
        sizes = [tensor.spec().size for tensor in tensors]
        address, memory = self._allocate(sum(sizes))
        owners: list[object] = [memory]
        for tensor, size, end in zip(tensors, sizes, accumulate(sizes), strict=True):
            owners.append(self._write(tensor, address + end - size, size))
        return DeviceInput(address, joined_shape(tensors), tensors[0].datatype, owners)

    def _write(self, tensor: Tensor, target: int, size: int) -> object:
        """Begin to copy one tensor to an address. Return what must live until that is over."""
        present = self._present(tensor)
        if present is not None:
            self._stream.copy(target, present.address, size)
            return present
        source: Array = np.frombuffer(tensor.data, np.uint8)
        pinned = self._incoming.take(size)
        if pinned is not None:
            pinned[:] = source
            source = pinned
        DEVICE_TRANSFERS.sent(size)
        self._stream.copy(target, source.ctypes.data, size)
        return source

    def output(self, address: int, shape: tuple[int, ...], datatype: str, owner: object) -> DeviceArray:
        """Return an output that a run wrote at an address of the device."""
        size = prod(shape) * (element_size(datatype) or 0)
        memory = AddressedMemory(address, size, datatype, self._device, self._stream, owner)
        return DeviceArray(memory, shape)

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """Return the outputs on the host, those of the device copied together."""
        fetched: dict[str, Array] = {}
        staged: dict[str, Array] = {}
        for name, output in outputs.items():
            if not isinstance(output, DeviceArray):
                fetched[name] = output
                continue
            memory = output.memory
            assert isinstance(memory, AddressedMemory)
            size = output.size * memory.dtype.itemsize
            pinned = self._outgoing.take(size)
            target = np.empty(size, np.uint8) if pinned is None else pinned
            DEVICE_TRANSFERS.fetched(size)
            self._stream.copy(target.ctypes.data, memory.address, size)
            (fetched if pinned is None else staged)[name] = target.view(memory.dtype).reshape(output.shape)
        self._stream.synchronize()
        # Copied out of the buffer, which the next batch writes to.
        return fetched | {name: array.copy() for name, array in staged.items()}


__all__ = ["AddressedMemory", "DeviceBatch", "DeviceInput"]

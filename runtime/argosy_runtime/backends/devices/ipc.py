"""Memory of a client's process on a GPU, opened by CUDA's handle for other processes (`cudaIpcMemHandle_t`).

It is copied by the driver, through host memory, into requests and out of responses; names and meanings of the functions
as in https://docs.nvidia.com/cuda/cuda-driver-api/.
"""

import ctypes
import logging
from typing import Final

import numpy as np

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.shared_memory.checks import CUDA_HANDLE_SIZE, registration_failed
from argosy_runtime.tensors import Data

from .cuda import call

_LAST_ORDINAL: Final = 2**31 - 1
_LAZY_PEER_ACCESS: Final = 1
_log: Final = logging.getLogger("argosy.shared_memory")


class _Handle(ctypes.Structure):
    """CUipcMemHandle, which is passed by value."""

    _fields_ = (("reserved", ctypes.c_ubyte * CUDA_HANDLE_SIZE),)


class CudaIpcMemory:
    """A region on a GPU, in the device's primary context. Raises ServingError where the handle cannot be opened."""

    def __init__(self, handle: bytes, device_id: int) -> None:
        self._device = ctypes.c_int()
        self._context = ctypes.c_void_p()
        self._address = ctypes.c_uint64()
        call("cuInit", 0)
        call("cuDeviceGet", ctypes.byref(self._device), device_id)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        try:
            self._enter()
            by_value = _Handle.from_buffer_copy(handle)
            call("cuIpcOpenMemHandle_v2", ctypes.byref(self._address), by_value, ctypes.c_uint(_LAZY_PEER_ACCESS))
        except ServingError:
            call("cuDevicePrimaryCtxRelease_v2", self._device)
            raise

    @property
    def available(self) -> int:
        """The bytes that the handle's memory has."""
        size = ctypes.c_size_t()
        self._enter()
        call("cuMemGetAddressRange_v2", None, ctypes.byref(size), self._address)
        return size.value

    def read_into(self, offset: int, buffer: memoryview) -> None:
        target = np.frombuffer(buffer, np.uint8)
        self._enter()
        address = ctypes.c_uint64(self._address.value + offset)
        call("cuMemcpyDtoH_v2", ctypes.c_void_p(target.ctypes.data), address, ctypes.c_size_t(target.nbytes))

    def write(self, offset: int, data: Data) -> None:
        if not len(data):
            return
        source = np.frombuffer(data, np.uint8)
        self._enter()
        address = ctypes.c_uint64(self._address.value + offset)
        call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(source.ctypes.data), ctypes.c_size_t(source.nbytes))

    def close(self) -> None:
        self._enter()
        call("cuIpcCloseMemHandle", self._address)
        call("cuDevicePrimaryCtxRelease_v2", self._device)

    def _enter(self) -> None:
        call("cuCtxSetCurrent", self._context)


def open_memory(name: str, handle: bytes, device_id: int, size: int) -> CudaIpcMemory:
    """Open a handle for a region. Raises INVALID_ARG, as Triton does; the log has the driver's reason."""
    unusable = invalid("failed to register shared memory region: invalid args")
    if device_id > _LAST_ORDINAL:
        raise unusable
    try:
        memory = CudaIpcMemory(handle, device_id)
    except ServingError as error:
        _log.error("%s", error.message)
        raise unusable from None
    try:
        fits = 0 < size <= memory.available
    except ServingError as error:
        _log.error("%s", error.message)
        fits = False
    if not fits:
        memory.close()
        raise registration_failed(name, "invalid args")
    return memory

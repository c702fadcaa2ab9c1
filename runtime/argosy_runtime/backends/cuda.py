"""A CUDA stream and page-locked memory by the driver alone, for frameworks whose Python has neither.

Of `libcuda`, which every machine with NVIDIA's driver has; names and meanings as in
https://docs.nvidia.com/cuda/cuda-driver-api/.
"""

import ctypes
from functools import cache
from typing import Any, Final, Protocol

import numpy as np

from argosy_runtime.errors import internal, unavailable
from argosy_runtime.messages import Array

_STREAM_NON_BLOCKING: Final = 1
_PORTABLE: Final = 1  # the memory is page-locked for every device


class DeviceStream(Protocol):
    """Where an instance's copies happen, one after the other and before or after its kernels."""

    @property
    def handle(self) -> int:
        """What a framework is told, to work on this stream."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Begin to copy so many bytes from one address to another; either may be the host's or the device's."""

    def pinned(self, size: int) -> Array:
        """So many bytes of page-locked memory, as uint8; it lasts as long as the array."""

    def synchronize(self) -> None:
        """Wait until all that was begun is over."""

    def close(self) -> None:
        """Give the stream back; what was copied stays."""


class CudaStream:
    """One on a GPU, which the framework shares: both use the device's primary context. Raises ServingError."""

    def __init__(self, device_id: int) -> None:
        self._device = ctypes.c_int()
        self._context = ctypes.c_void_p()
        self._stream = ctypes.c_void_p()
        _call("cuInit", 0)
        _call("cuDeviceGet", ctypes.byref(self._device), device_id)
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self._enter()
        _call("cuStreamCreate", ctypes.byref(self._stream), _STREAM_NON_BLOCKING)

    def _enter(self) -> None:
        """Make the context this thread's: calls go to whichever that is."""
        _call("cuCtxSetCurrent", self._context)

    @property
    def handle(self) -> int:
        """See `DeviceStream`."""
        return self._stream.value or 0

    def copy(self, target: int, source: int, size: int) -> None:
        """See `DeviceStream`."""
        if not size:
            return
        self._enter()
        _call("cuMemcpyAsync", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size), self._stream)

    def pinned(self, size: int) -> Array:
        """See `DeviceStream`."""
        self._enter()
        return _Pinned(self._context, size).array()

    def synchronize(self) -> None:
        """See `DeviceStream`."""
        self._enter()
        _call("cuStreamSynchronize", self._stream)

    def close(self) -> None:
        """See `DeviceStream`."""
        self._enter()
        _call("cuStreamDestroy_v2", self._stream)
        _call("cuDevicePrimaryCtxRelease_v2", self._device)


class _Pinned:
    """Page-locked memory, given back with the last array over it."""

    def __init__(self, context: ctypes.c_void_p, size: int) -> None:
        self._context = context
        self._address = ctypes.c_void_p()
        self._size = size
        _call("cuMemHostAlloc", ctypes.byref(self._address), ctypes.c_size_t(size), _PORTABLE)

    def array(self) -> Array:
        """Over all of it."""
        return np.asarray(self)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": (self._size,), "typestr": "|u1", "data": (self._address.value, False)}

    def __del__(self) -> None:
        if self._address:
            _driver().cuCtxSetCurrent(self._context)
            _driver().cuMemFreeHost(self._address)


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise unavailable(f"CUDA cannot be used here: {error}") from error


def _call(name: str, *arguments: object) -> None:
    status = getattr(_driver(), name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        raise internal(f"CUDA's {name} failed with {status}: {(text.value or b'unknown').decode()}")

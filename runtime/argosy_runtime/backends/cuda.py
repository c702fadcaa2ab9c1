"""A CUDA stream, memory and graphs by the driver alone, for frameworks whose Python has none of them.

Of `libcuda`, which every machine with NVIDIA's driver has; names and meanings as in
https://docs.nvidia.com/cuda/cuda-driver-api/.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Literal, Protocol

import numpy as np

from argosy_common import device_errors
from argosy_runtime.errors import internal, unavailable
from argosy_runtime.messages import Array

_STREAM_NON_BLOCKING: Final = 1
_PORTABLE: Final = 1  # the memory is page-locked for every device
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_CAPTURE_THREAD_LOCAL: Final = 1  # other threads go on with what a capture forbids

Priority = Literal["", "highest", "lowest"]
"""A stream's priority among those of its device; empty for the ordinary one."""


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


class DeviceHeap(Protocol):
    """A device's memory by address. Any thread may call it."""

    def allocate(self, size: int) -> int:
        """Allocate so many bytes. Return their address, a multiple of 256. Raises ServingError where there is
        no room.
        """

    def free(self, address: int) -> None:
        """Give them back: nothing on the device uses them any more."""


class Graph(Protocol):
    """Work that was captured once and is launched as a whole."""

    def launch(self) -> None:
        """Begin it on the stream that it was captured on."""

    def close(self) -> None:
        """Give it back."""


class ComputeStream(DeviceStream, DeviceHeap, Protocol):
    """A stream for frameworks that are given addresses: with the device's memory, and graphs of what it is told."""

    def enter(self) -> None:
        """Make the device this thread's, for a framework that asks which it is."""

    def capture(self, work: Callable[[], bool]) -> Graph | None:
        """Capture what `work` begins on the stream as a graph. Return None where it says that it could not. Raises
        ServingError.
        """


class CudaStream:
    """One on a GPU, which the framework shares: both use the device's primary context. Raises ServingError."""

    def __init__(self, device_id: int, priority: Priority = "") -> None:
        self._device = ctypes.c_int()
        self._context = ctypes.c_void_p()
        self._stream = ctypes.c_void_p()
        _call("cuInit", 0)
        _call("cuDeviceGet", ctypes.byref(self._device), device_id)
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self.enter()
        if priority:
            _call("cuStreamCreateWithPriority", ctypes.byref(self._stream), _STREAM_NON_BLOCKING, _rank(priority))
        else:
            _call("cuStreamCreate", ctypes.byref(self._stream), _STREAM_NON_BLOCKING)

    def enter(self) -> None:
        """See `ComputeStream`: calls go to whichever context is this thread's."""
        _call("cuCtxSetCurrent", self._context)

    @property
    def handle(self) -> int:
        """See `DeviceStream`."""
        return self._stream.value or 0

    def copy(self, target: int, source: int, size: int) -> None:
        """See `DeviceStream`."""
        if not size:
            return
        self.enter()
        _call("cuMemcpyAsync", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size), self._stream)

    def pinned(self, size: int) -> Array:
        """See `DeviceStream`."""
        self.enter()
        return _Pinned(self._context, size).array()

    def synchronize(self) -> None:
        """See `DeviceStream`."""
        self.enter()
        _call("cuStreamSynchronize", self._stream)

    def allocate(self, size: int) -> int:
        """See `DeviceHeap`."""
        self.enter()
        address = ctypes.c_uint64()
        _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def free(self, address: int) -> None:
        """See `DeviceHeap`."""
        self.enter()
        _call("cuMemFree_v2", ctypes.c_uint64(address))

    def capture(self, work: Callable[[], bool]) -> Graph | None:
        """See `ComputeStream`."""
        self.enter()
        graph = ctypes.c_void_p()
        _call("cuStreamBeginCapture_v2", self._stream, _CAPTURE_THREAD_LOCAL)
        captured = False
        try:
            captured = work()
        finally:
            # Ended in any case: a stream that captures takes nothing else. The end of a broken one fails.
            status = _driver().cuStreamEndCapture(self._stream, ctypes.byref(graph))
        if not captured or status or not graph:
            if graph:
                _call("cuGraphDestroy", graph)
            return None
        return _Graph(self, graph)

    def close(self) -> None:
        """See `DeviceStream`."""
        self.enter()
        _call("cuStreamDestroy_v2", self._stream)
        _call("cuDevicePrimaryCtxRelease_v2", self._device)


class _Graph:
    """See `Graph`."""

    def __init__(self, stream: CudaStream, captured: ctypes.c_void_p) -> None:
        self._stream = stream
        self._executable = ctypes.c_void_p()
        try:
            _call("cuGraphInstantiateWithFlags", ctypes.byref(self._executable), captured, ctypes.c_uint64(0))
        finally:
            _call("cuGraphDestroy", captured)

    def launch(self) -> None:
        """See `Graph`."""
        self._stream.enter()
        _call("cuGraphLaunch", self._executable, ctypes.c_void_p(self._stream.handle))

    def close(self) -> None:
        """See `Graph`."""
        self._stream.enter()
        _call("cuGraphExecDestroy", self._executable)


def compute_capability(device_id: int) -> str:
    """Return the compute capability of a GPU, such as 9.0. Raises ServingError."""
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    _call("cuInit", 0)
    _call("cuDeviceGet", ctypes.byref(device), device_id)
    _call("cuDeviceGetAttribute", ctypes.byref(major), _CAPABILITY_MAJOR, device)
    _call("cuDeviceGetAttribute", ctypes.byref(minor), _CAPABILITY_MINOR, device)
    return f"{major.value}.{minor.value}"


def _rank(priority: Priority) -> ctypes.c_int:
    least, greatest = ctypes.c_int(), ctypes.c_int()
    _call("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
    return greatest if priority == "highest" else least


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
        words = f"CUDA's {name} failed with {status}: {(text.value or b'unknown').decode()}"
        raise internal(words, device_error=device_errors.line_of(words))

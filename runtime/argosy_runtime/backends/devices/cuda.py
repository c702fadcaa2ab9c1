"""A CUDA stream, memory and graphs by the driver alone, for frameworks whose Python has none of them.

The functions are those of `libcuda`, which every machine with NVIDIA's driver has; names and meanings as in
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
    """Order of an instance's copies, one after the other and before or after its kernels."""

    @property
    def handle(self) -> int:
        """The number by which a framework works on this stream."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Begin to copy bytes from one address to another; either may be the host's or the device's."""

    def pinned(self, size: int) -> Array:
        """Allocate page-locked memory, as uint8; it lasts as long as the array."""

    def synchronize(self) -> None:
        """Wait until all copies and kernels on the stream have ended."""

    def close(self) -> None:
        """Destroy the stream; copied data stays."""


class CudaGraph:
    """Work that was captured once, and is launched as one."""

    def __init__(self, stream: "CudaStream", captured: ctypes.c_void_p) -> None:
        self._stream = stream
        self._executable = ctypes.c_void_p()
        try:
            call("cuGraphInstantiateWithFlags", ctypes.byref(self._executable), captured, ctypes.c_uint64(0))
        finally:
            call("cuGraphDestroy", captured)

    def launch(self) -> None:
        """Begin the work on the stream that it was captured on."""
        self._stream.enter()
        call("cuGraphLaunch", self._executable, ctypes.c_void_p(self._stream.handle))

    def close(self) -> None:
        """Destroy the graph."""
        self._stream.enter()
        call("cuGraphExecDestroy", self._executable)


class CudaStream:
    """A stream of a GPU, in the device's primary context, which the framework uses too. Raises ServingError."""

    def __init__(self, device_id: int, priority: Priority = "") -> None:
        self._device = ctypes.c_int()
        self._context = ctypes.c_void_p()
        self._stream = ctypes.c_void_p()
        call("cuInit", 0)
        call("cuDeviceGet", ctypes.byref(self._device), device_id)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self.enter()
        if priority:
            call("cuStreamCreateWithPriority", ctypes.byref(self._stream), _STREAM_NON_BLOCKING, _rank(priority))
        else:
            call("cuStreamCreate", ctypes.byref(self._stream), _STREAM_NON_BLOCKING)

    def enter(self) -> None:
        """Make the device's context this thread's: calls of the driver, and of some frameworks, go to that one."""
        call("cuCtxSetCurrent", self._context)

    @property
    def handle(self) -> int:
        return self._stream.value or 0

    def copy(self, target: int, source: int, size: int) -> None:
        if not size:
            return
        self.enter()
        call("cuMemcpyAsync", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size), self._stream)

    def pinned(self, size: int) -> Array:
        self.enter()
        return _Pinned(self._context, size).array()

    def synchronize(self) -> None:
        self.enter()
        call("cuStreamSynchronize", self._stream)

    def allocate(self, size: int) -> int:
        """Allocate memory of the device. Return its address, a multiple of 256. Safe from any thread.

        Raises ServingError where the device has too little.
        """
        self.enter()
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def free(self, address: int) -> None:
        """Free memory that nothing on the device uses any more. Safe from any thread."""
        self.enter()
        call("cuMemFree_v2", ctypes.c_uint64(address))

    def capture(self, work: Callable[[], bool]) -> CudaGraph | None:
        """Capture as a graph what `work` begins on the stream; None where `work` or the capture fails.

        Raises ServingError.
        """
        self.enter()
        graph = ctypes.c_void_p()
        call("cuStreamBeginCapture_v2", self._stream, _CAPTURE_THREAD_LOCAL)
        captured = False
        try:
            captured = work()
        finally:
            # Ended in any case: a stream that captures takes nothing else. The end of a broken one fails.
            status = _driver().cuStreamEndCapture(self._stream, ctypes.byref(graph))
        if not captured or status or not graph:
            if graph:
                call("cuGraphDestroy", graph)
            return None
        return CudaGraph(self, graph)

    def close(self) -> None:
        self.enter()
        call("cuStreamDestroy_v2", self._stream)
        call("cuDevicePrimaryCtxRelease_v2", self._device)


def compute_capability(device_id: int) -> str:
    """Return the compute capability of a GPU, such as 9.0. Raises ServingError."""
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), device_id)
    call("cuDeviceGetAttribute", ctypes.byref(major), _CAPABILITY_MAJOR, device)
    call("cuDeviceGetAttribute", ctypes.byref(minor), _CAPABILITY_MINOR, device)
    return f"{major.value}.{minor.value}"


def _rank(priority: Priority) -> ctypes.c_int:
    least, greatest = ctypes.c_int(), ctypes.c_int()
    call("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
    return greatest if priority == "highest" else least


class _Pinned:
    """Page-locked memory, freed with the last array over it."""

    def __init__(self, context: ctypes.c_void_p, size: int) -> None:
        self._context = context
        self._address = ctypes.c_void_p()
        self._size = size
        call("cuMemHostAlloc", ctypes.byref(self._address), ctypes.c_size_t(size), _PORTABLE)

    def array(self) -> Array:
        """Return an array over all of it."""
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


def call(name: str, *arguments: object) -> None:
    """Call a function of the driver. Raises ServingError with its name and the driver's words where it fails."""
    status = getattr(_driver(), name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        words = f"CUDA's {name} failed with {status}: {(text.value or b'unknown').decode()}"
        raise internal(words, device_error=device_errors.line_of(words))

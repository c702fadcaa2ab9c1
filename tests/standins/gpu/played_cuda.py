"""A fake driver of CUDA: its devices' memory is the host's, and a stream does its work when it is waited for.

So what is read before it was waited for, or let go of before it was used, shows. Arguments are checked as the driver's
headers declare them.
"""

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, CAPTURE_INVALIDATED = 0, 1, 2, 901
CONTEXT = 0xC0DE
ALIGNMENT = 256


@dataclass
class Stream:
    """Work in order; while it captures, the work goes into a graph instead."""

    handle: int
    priority: int = 0
    queue: list[Callable[[], None]] = field(default_factory=list)
    captured: list[Callable[[], None]] | None = None
    broken: bool = False

    def add(self, work: Callable[[], None]) -> None:
        """Queue it after all that is there."""
        (self.queue if self.captured is None else self.captured).append(work)

    def synchronize(self) -> None:
        """Do all of it."""
        work, self.queue = self.queue, []
        for operation in work:
            operation()


class PlayedDriver:
    """`libcuda` as far as the server uses it."""

    def __init__(self, compute_capability: str = "9.0", total_memory: int = 1 << 30) -> None:
        self.compute_capability = compute_capability
        self.total_memory = total_memory
        self.streams: dict[int, Stream] = {}
        self.live: dict[int, int] = {}
        self.freed: dict[int, int] = {}
        self.graphs: dict[int, list[Callable[[], None]]] = {}
        self.launched = 0
        self.allocations = 0
        self.exported: dict[bytes, int] = {}
        self.opened: dict[int, int] = {}
        self.faults: list[str] = []
        self._buffers: list[Any] = []
        self._next = 0x5000
        self._current = threading.local()

    def stream(self, handle: int) -> Stream:
        """Return the stream with this handle, which must be on this thread's context."""
        assert type(handle) is int
        assert handle, "the default stream would wait for the whole device"
        self._check_context("work on a stream")
        return self.streams[handle]

    def check_address(self, address: int, size: int) -> None:
        """Check that this memory of the device has not been freed."""
        for begin, length in self.freed.items():
            if begin < address + size and address < begin + length and not self.is_live(address):
                self.faults.append(f"{address:#x} was freed")

    def is_live(self, address: int) -> bool:
        """Return whether it is memory of the device."""
        return any(begin <= address < begin + length for begin, length in self.live.items())

    def export(self, content: bytes) -> bytes:
        """Return the handle of memory with this content, as another process of the machine makes one."""
        address = self._buffer(len(content))
        ctypes.memmove(address, content, len(content))
        self.live[address] = len(content)
        handle = address.to_bytes(8, "little") + bytes(56)
        self.exported[handle] = address
        return handle

    def _check_context(self, what: str) -> None:
        if getattr(self._current, "context", None) != CONTEXT:
            self.faults.append(f"{what} without a context")

    def _buffer(self, size: int) -> int:
        memory = ctypes.create_string_buffer(b"\xcd" * (size + ALIGNMENT), size + ALIGNMENT)
        self._buffers.append(memory)  # kept, so that no freed address comes again
        begin = ctypes.addressof(memory)
        return begin + -begin % ALIGNMENT

    def _handle(self) -> int:
        self._next += 1
        return self._next

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return SUCCESS if flags == 0 else INVALID_VALUE

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:  # noqa: N802
        device._obj.value = ordinal
        return SUCCESS

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: ctypes.c_int) -> int:  # noqa: N802
        parts = dict(zip((75, 76), map(int, self.compute_capability.split(".")), strict=True))
        value._obj.value = parts[attribute]
        return SUCCESS

    def cuDevicePrimaryCtxRetain(self, context: Any, device: ctypes.c_int) -> int:  # noqa: N802
        context._obj.value = CONTEXT
        return SUCCESS

    def cuDevicePrimaryCtxRelease_v2(self, device: ctypes.c_int) -> int:  # noqa: N802
        return SUCCESS

    def cuCtxSetCurrent(self, context: ctypes.c_void_p) -> int:  # noqa: N802
        self._current.context = context.value
        return SUCCESS

    def cuCtxGetStreamPriorityRange(self, least: Any, greatest: Any) -> int:  # noqa: N802
        least._obj.value, greatest._obj.value = 0, -5
        return SUCCESS

    def cuStreamCreate(self, stream: Any, flags: int) -> int:  # noqa: N802
        return self.cuStreamCreateWithPriority(stream, flags, ctypes.c_int(0))

    def cuStreamCreateWithPriority(self, stream: Any, flags: int, priority: ctypes.c_int) -> int:  # noqa: N802
        stream._obj.value = self._handle()
        self.streams[stream._obj.value] = Stream(stream._obj.value, priority.value)
        return SUCCESS if flags == 1 else INVALID_VALUE

    def cuStreamSynchronize(self, stream: ctypes.c_void_p) -> int:  # noqa: N802
        current = self.stream(stream.value or 0)
        if current.captured is not None:
            current.broken = True
            return CAPTURE_INVALIDATED
        current.synchronize()
        return SUCCESS

    def cuStreamDestroy_v2(self, stream: ctypes.c_void_p) -> int:  # noqa: N802
        self.stream(stream.value or 0).synchronize()
        del self.streams[stream.value or 0]
        return SUCCESS

    def cuStreamBeginCapture_v2(self, stream: ctypes.c_void_p, mode: int) -> int:  # noqa: N802
        current = self.stream(stream.value or 0)
        assert mode == 1, "other modes forbid other threads' work"
        assert current.captured is None
        current.captured, current.broken = [], False
        return SUCCESS

    def cuStreamEndCapture(self, stream: ctypes.c_void_p, graph: Any) -> int:  # noqa: N802
        current = self.stream(stream.value or 0)
        work, current.captured = current.captured, None
        if current.broken or work is None:
            return CAPTURE_INVALIDATED
        graph._obj.value = self._handle()
        self.graphs[graph._obj.value] = work
        return SUCCESS

    def cuGraphInstantiateWithFlags(self, executable: Any, graph: ctypes.c_void_p, flags: ctypes.c_uint64) -> int:  # noqa: N802
        assert flags.value == 0
        executable._obj.value = self._handle()
        self.graphs[executable._obj.value] = self.graphs[graph.value or 0]
        return SUCCESS

    def cuGraphLaunch(self, executable: ctypes.c_void_p, stream: ctypes.c_void_p) -> int:  # noqa: N802
        self.launched += 1
        for work in self.graphs[executable.value or 0]:
            self.stream(stream.value or 0).add(work)
        return SUCCESS

    def cuGraphDestroy(self, graph: ctypes.c_void_p) -> int:  # noqa: N802
        del self.graphs[graph.value or 0]
        return SUCCESS

    cuGraphExecDestroy = cuGraphDestroy  # noqa: N815

    def cuMemAlloc_v2(self, address: Any, size: ctypes.c_size_t) -> int:  # noqa: N802
        self._check_context("an allocation")
        if size.value == 0:
            return INVALID_VALUE
        if sum(self.live.values()) + size.value > self.total_memory:
            return OUT_OF_MEMORY
        address._obj.value = self._buffer(size.value)
        self.live[address._obj.value] = size.value
        self.allocations += 1
        return SUCCESS

    def cuMemFree_v2(self, address: ctypes.c_uint64) -> int:  # noqa: N802
        size = self.live.pop(address.value, 0)
        if not size:
            return INVALID_VALUE
        self.freed[address.value] = size
        ctypes.memset(address.value, 0xDD, size)
        return SUCCESS

    def cuIpcOpenMemHandle_v2(self, address: Any, handle: Any, flags: ctypes.c_uint) -> int:  # noqa: N802
        self._check_context("opening a handle")
        assert ctypes.sizeof(handle) == 64, "a handle is passed by value"
        assert flags.value == 1
        begin = self.exported.get(bytes(handle), 0)
        if not begin:
            return INVALID_VALUE
        self.opened[begin] = self.opened.get(begin, 0) + 1
        address._obj.value = begin
        return SUCCESS

    def cuIpcCloseMemHandle(self, address: ctypes.c_uint64) -> int:  # noqa: N802
        self._check_context("closing a handle")
        self.opened[address.value] -= 1
        return SUCCESS

    def cuMemGetAddressRange_v2(self, base: Any, size: Any, address: ctypes.c_uint64) -> int:  # noqa: N802
        self._check_context("looking memory up")
        assert base is None
        size._obj.value = self.live[address.value]
        return SUCCESS

    def cuMemcpyDtoH_v2(self, target: ctypes.c_void_p, source: ctypes.c_uint64, size: ctypes.c_size_t) -> int:  # noqa: N802
        self._check_context("a copy")
        self.check_address(source.value, size.value)
        ctypes.memmove(target.value or 0, source.value, size.value)
        return SUCCESS

    def cuMemcpyHtoD_v2(self, target: ctypes.c_uint64, source: ctypes.c_void_p, size: ctypes.c_size_t) -> int:  # noqa: N802
        self._check_context("a copy")
        self.check_address(target.value, size.value)
        ctypes.memmove(target.value, source.value or 0, size.value)
        return SUCCESS

    def cuMemHostAlloc(self, address: Any, size: ctypes.c_size_t, flags: int) -> int:  # noqa: N802
        address._obj.value = self._buffer(size.value)
        return SUCCESS if flags == 1 else INVALID_VALUE

    def cuMemFreeHost(self, address: ctypes.c_void_p) -> int:  # noqa: N802
        return SUCCESS

    def cuMemcpyAsync(self, target: Any, source: Any, size: Any, stream: Any) -> int:  # noqa: N802
        assert isinstance(target, ctypes.c_uint64)
        assert isinstance(source, ctypes.c_uint64)

        def copy() -> None:
            self.check_address(target.value, size.value)
            self.check_address(source.value, size.value)
            ctypes.memmove(target.value, source.value, size.value)

        self.stream(stream.value or 0).add(copy)
        return SUCCESS

    def cuGetErrorString(self, status: int, text: Any) -> int:  # noqa: N802
        names = {OUT_OF_MEMORY: b"out of memory", INVALID_VALUE: b"invalid argument"}
        text._obj.value = names.get(status, b"operation failed")
        return SUCCESS


DRIVER = PlayedDriver()
"""The one of this process, which the stand-in of TensorRT puts its work on."""


def fresh(compute_capability: str = "9.0", total_memory: int = 1 << 30) -> PlayedDriver:
    """Reset the process's driver and return it."""
    DRIVER.__init__(compute_capability, total_memory)  # type: ignore[misc]
    return DRIVER

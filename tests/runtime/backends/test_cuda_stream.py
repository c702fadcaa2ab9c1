"""Calls of the CUDA driver, against a fake whose memory is the host's."""

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

from argosy_runtime.backends.devices import cuda
from argosy_runtime.errors import ServingError

OUT_OF_MEMORY = 2


class FakeDriver:
    """Does what the real one visibly does, and records the calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.context: int | None = None
        self.full = False
        self._pinned: dict[int, Any] = {}

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return self._note("init")

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:  # noqa: N802
        device._obj.value = ordinal + 10
        return self._note(f"device {ordinal}")

    def cuDevicePrimaryCtxRetain(self, context: Any, device: ctypes.c_int) -> int:  # noqa: N802
        context._obj.value = device.value + 100
        return self._note(f"retain {device.value}")

    def cuDevicePrimaryCtxRelease_v2(self, device: ctypes.c_int) -> int:  # noqa: N802
        return self._note(f"release {device.value}")

    def cuCtxSetCurrent(self, context: ctypes.c_void_p) -> int:  # noqa: N802
        self.context = context.value
        return 0

    def cuStreamCreate(self, stream: Any, flags: int) -> int:  # noqa: N802
        stream._obj.value = 0x5000
        return self._note(f"create {flags}")

    def cuStreamSynchronize(self, stream: ctypes.c_void_p) -> int:  # noqa: N802
        return self._note(f"synchronize {stream.value:#x}")

    def cuStreamDestroy_v2(self, stream: ctypes.c_void_p) -> int:  # noqa: N802
        return self._note(f"destroy {stream.value:#x}")

    def cuMemHostAlloc(self, address: Any, size: ctypes.c_size_t, flags: int) -> int:  # noqa: N802
        if self.full:
            return OUT_OF_MEMORY
        memory = ctypes.create_string_buffer(size.value)
        address._obj.value = ctypes.addressof(memory)
        self._pinned[ctypes.addressof(memory)] = memory
        return self._note(f"allocate {size.value} {flags}")

    def cuMemFreeHost(self, address: ctypes.c_void_p) -> int:  # noqa: N802
        del self._pinned[address.value or 0]
        return self._note("free")

    def cuMemcpyAsync(self, target: Any, source: Any, size: Any, stream: Any) -> int:  # noqa: N802
        assert self.context == 112
        ctypes.memmove(target.value, source.value, size.value)
        return self._note(f"copy {size.value} {stream.value:#x}")

    def cuGetErrorString(self, status: int, text: Any) -> int:  # noqa: N802
        text._obj.value = b"out of memory"
        return 0

    def _note(self, what: str) -> int:
        self.calls.append(what)
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(cuda, "_driver", lambda: fake)
    return fake


def test_a_stream_lives_in_the_context_that_frameworks_share(driver: FakeDriver) -> None:
    stream = cuda.CudaStream(2)
    assert stream.handle == 0x5000
    source, target = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    driver.context = None  # another thread's
    stream.copy(target.ctypes.data, source.ctypes.data, source.nbytes)
    stream.copy(target.ctypes.data, source.ctypes.data, 0)
    stream.synchronize()
    assert target.tolist() == source.tolist()
    stream.close()
    begin = ["init", "device 2", "retain 12", "create 1"]
    assert driver.calls == [*begin, "copy 24 0x5000", "synchronize 0x5000", "destroy 0x5000", "release 12"]


def test_page_locked_memory_goes_with_the_last_array_over_it(driver: FakeDriver) -> None:
    stream = cuda.CudaStream(2)
    driver.calls.clear()
    part = stream.pinned(256)[64:128]
    part[:] = 7
    gc.collect()
    assert driver.calls == ["allocate 256 1"]
    assert part.tolist() == [7] * 64
    del part
    gc.collect()
    assert driver.calls == ["allocate 256 1", "free"]


def test_what_the_driver_refuses_is_reported(driver: FakeDriver) -> None:
    stream = cuda.CudaStream(2)
    driver.full = True
    with pytest.raises(ServingError, match=r"CUDA's cuMemHostAlloc failed with 2: out of memory"):
        stream.pinned(8)


def test_a_machine_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    cuda._driver.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(ServingError, match=r"CUDA cannot be used here: libcuda.so.1: cannot open"):
        cuda.CudaStream(0)

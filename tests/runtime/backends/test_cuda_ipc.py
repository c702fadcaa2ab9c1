"""Clients' memory on a GPU, on a stand-in of the driver; it has not run on a GPU."""

import ctypes
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.runtime.backends.plans import GPU, played
from tests.runtime.shared_memory.memories import read

from argosy_runtime.backends.devices import cuda
from argosy_runtime.backends.devices.ipc import open_memory
from argosy_runtime.errors import ErrorKind, ServingError

CONTENT = bytes(range(64))
NO_GPU = "failed to register shared memory region: invalid args"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(GPU))
    with played() as driver:
        yield driver


def test_it_is_read_and_written_where_the_client_has_it(driver: Any) -> None:
    handle = driver.export(CONTENT)
    memory = open_memory("r", handle, 0, 32)
    assert read(memory, 4, 4) == CONTENT[4:8]
    memory.write(2, b"abc")
    memory.write(2, b"")
    address = driver.exported[handle]
    assert ctypes.string_at(address, 64) == CONTENT[:2] + b"abc" + CONTENT[5:]
    memory.close()
    assert driver.opened[address] == 0


def test_any_thread_may_use_it(driver: Any) -> None:
    memory = open_memory("r", driver.export(CONTENT), 0, 64)
    contents: list[bytes] = []
    thread = threading.Thread(target=lambda: contents.append(read(memory, 0, 64)))
    thread.start()
    thread.join()
    assert contents == [CONTENT]
    memory.close()


@pytest.mark.parametrize("size", [0, 65, 2**64 - 1])
def test_a_region_that_the_handle_does_not_hold_is_refused_and_closed(driver: Any, size: int) -> None:
    handle = driver.export(CONTENT)
    with pytest.raises(ServingError) as raised:
        open_memory("r", handle, 0, size)
    assert raised.value.message == "failed to register shared memory region 'r': invalid args"
    assert driver.opened[driver.exported[handle]] == 0


def test_a_handle_that_the_driver_refuses_is_the_clients_error(driver: Any, caplog: pytest.LogCaptureFixture) -> None:
    for handle, device in ((bytes(64), 0), (driver.export(CONTENT), 2**40)):
        with pytest.raises(ServingError) as raised:
            open_memory("r", handle, device, 8)
        assert (raised.value.kind, raised.value.message) == (ErrorKind.INVALID_ARG, NO_GPU)
    assert "cuIpcOpenMemHandle_v2 failed with 1: invalid argument" in caplog.text


def test_without_a_gpu_it_is_refused_with_tritons_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(name: str) -> Any:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    cuda._driver.cache_clear()
    with caplog.at_level(logging.ERROR), pytest.raises(ServingError) as raised:
        open_memory("r", bytes(64), 0, 8)
    cuda._driver.cache_clear()
    assert (raised.value.kind, raised.value.message) == (ErrorKind.INVALID_ARG, NO_GPU)
    assert "CUDA cannot be used here: libcuda.so.1: cannot open shared object file" in caplog.text

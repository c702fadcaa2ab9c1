"""Both front ends without sockets, before the fake data plane of the tests, and what goes wrong in them unseen."""

import asyncio
import atexit
import functools
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from tests.runtime.frontends.conftest import FakePlane
from tests.runtime.shared_memory.memories import PlayedMemory

from argosy_runtime.shared_memory.checks import check_extent
from argosy_runtime.shared_memory.regions import ClientRegions

_FEWEST_TURNS = 4
_MOST_TURNS = 40
"""Turns of the event loop in which the fake plane's models have answered, except the one that waits."""
_MEMORY_SIZE = 1 << 16


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_raise)
    atexit.register(loop.close)
    return loop


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on the event loop of all targets."""
    _loop().run_until_complete(work)


async def turns() -> None:
    """Let the event loop do what is due."""
    for turn in range(_MOST_TURNS):
        await asyncio.sleep(0)
        if turn >= _FEWEST_TURNS and len(asyncio.all_tasks()) == 1:
            break


def _open_system(name: str, key: str, offset: int, size: int) -> PlayedMemory:
    check_extent(name, _MEMORY_SIZE, offset, size, 1)
    return PlayedMemory(bytes(size))


def _open_cuda(name: str, handle: bytes, device: int, size: int) -> PlayedMemory:
    return _open_system(name, "", device, size)


class Plane(FakePlane):
    """The fake data plane, with regions of memory that it makes up."""

    def reset(self) -> None:
        super().reset()
        self.regions = ClientRegions(_open_system, _open_cuda, allowed=True)


class _Faults(logging.Handler):
    """Collects the exceptions that are logged as unexpected."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.exceptions: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.exceptions.append(record.exc_info[1])


_FAULTS = _Faults()


def _raise(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    _FAULTS.exceptions.append(context.get("exception") or RuntimeError(context["message"]))


@contextmanager
def no_faults() -> Iterator[None]:
    """Raise the first exception that a front end caught, logged and answered as unexpected."""
    log = logging.getLogger()
    log.addHandler(_FAULTS)
    _FAULTS.exceptions.clear()
    try:
        yield
    finally:
        log.removeHandler(_FAULTS)
    if _FAULTS.exceptions:
        raise AssertionError("a front end failed unexpectedly") from _FAULTS.exceptions[0]

"""The memory and the thread of comparisons: one of each for a server."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

MEMORY_LIMIT: Final = 64 << 20
"""Bytes of requests and responses that all shadows of a server may hold together."""
_INLINE_BYTES: Final = 64 << 10
"""What is compared at once: in a tenth of a millisecond at most."""

T = TypeVar("T")


class ComparisonWork:
    """Compares large answers on a thread of its own, one after the other, and limits the bytes that wait for it."""

    def __init__(self, limit: int = MEMORY_LIMIT) -> None:
        self._limit = limit
        self._reserved = 0
        self._thread: ThreadPoolExecutor | None = None
        self._running: set[asyncio.Future[Any]] = set()

    @property
    def reserved(self) -> int:
        """The bytes that are held."""
        return self._reserved

    def reserve(self, size: int) -> bool:
        """Count bytes that are held from now on. Return False, and count nothing, where they are too many."""
        if self._reserved + size > self._limit:
            return False
        self._reserved += size
        return True

    def release(self, size: int) -> None:
        """Count bytes that are not held any more."""
        self._reserved -= size

    def run(self, size: int, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Call `work`, which reads `size` bytes, at once or on the thread, then `done` with its result or error."""
        if size <= _INLINE_BYTES:
            done(_result(work))
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="shadow")
        future = asyncio.get_running_loop().run_in_executor(self._thread, _result, work)
        self._running.add(future)

        def finish(finished: "asyncio.Future[T | Exception]") -> None:
            self._running.discard(finished)
            if not finished.cancelled():
                done(finished.result())

        future.add_done_callback(finish)

    async def finished(self) -> None:
        """Wait until no comparison is under way."""
        while self._running:
            await asyncio.wait(list(self._running))
            await asyncio.sleep(0)

    def close(self) -> None:
        """Start no further comparison on the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None


def _result(work: Callable[[], T]) -> T | Exception:
    try:
        return work()
    except Exception as error:
        return error

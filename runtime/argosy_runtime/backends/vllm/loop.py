"""The event loop of an engine, on a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

CANCEL_SECONDS = 1.0
"""Seconds that tasks of a loop that ends have to end by themselves."""


class EngineLoop:
    """A running event loop. All methods but `stop` may be called from any thread."""

    def __init__(self, name: str) -> None:
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def post(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function on the loop."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and wait for its result."""
        return self.submit(coroutine).result()

    def stop(self) -> None:
        """End the loop, from another thread. A `run` of another thread that is not done raises CancelledError."""
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=CANCEL_SECONDS)


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop, which vLLM's packages include, or of asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop

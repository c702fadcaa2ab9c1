"""An asyncio loop on a thread of its own, for models whose `execute` is a coroutine."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

Done = Callable[["Future[Any]"], None]


class EventLoop:
    """An asyncio loop that runs until `stop`. `most`: how many coroutines of `begin` may run at a time, 0 for any."""

    def __init__(self, name: str, most: int = 0) -> None:
        self._loop = asyncio.new_event_loop()
        self._slots = threading.Semaphore(most - 1) if most else None
        self._runner = threading.Thread(target=self._loop.run_forever, name=f"{name}-asyncio", daemon=True)
        self._runner.start()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine in the caller's context."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def begin(self, coroutine: Coroutine[Any, Any, Any], done: Done) -> None:
        """Run a coroutine in the background; `done` gets its future when it has ended.

        Returns once another coroutine may begin.
        """

        def ended(future: "Future[Any]") -> None:
            try:
                done(future)
            finally:
                if self._slots is not None:
                    self._slots.release()

        self.submit(coroutine).add_done_callback(ended)
        if self._slots is not None:
            self._slots.acquire()

    def stop(self) -> None:
        """Cancel the open tasks, wait for them, and end the thread."""
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._runner.join()
        self._loop.close()

    async def _cancel_all(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()

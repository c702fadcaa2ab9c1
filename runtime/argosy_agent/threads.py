"""Daemon threads for blocking or repeated work: a process that ends does not wait for them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Event, Thread
from typing import TypeVar

Result = TypeVar("Result")


class Worker:
    """A daemon thread that runs one piece of work after the other.

    A process that ends does not wait for it, as it would for an executor's threads, however long a server takes.
    """

    def __init__(self) -> None:
        self._queue = SimpleQueue[Callable[[], None] | None]()
        self._started = False

    def do(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Run `work` after all work before it, and return its future."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def settle(result: Result | None, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]  # None only where `Result` has it

        def run() -> None:
            result: Result | None = None
            error: BaseException | None = None
            try:
                result = work()
            except BaseException as raised:  # whatever it is, the future raises it
                error = raised
            with suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(settle, result, error)

        self._queue.put(run)
        if not self._started:
            self._started = True
            Thread(target=self._run, daemon=True).start()
        return future

    def close(self) -> None:
        """End the thread once its work is done."""
        self._queue.put(None)

    def _run(self) -> None:
        while (run := self._queue.get()) is not None:
            run()


def in_thread(work: Callable[[], Result]) -> asyncio.Future[Result]:
    """Run `work` in a daemon thread of its own, and return its future."""
    worker = Worker()
    future = worker.do(work)
    worker.close()
    return future


@contextmanager
def repeated(work: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call `work`, which raises nothing, every `every_s` seconds until the block ends; the first time after these."""
    over = Event()

    def run() -> None:
        while not over.wait(every_s):
            work()

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

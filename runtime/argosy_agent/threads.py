"""Work in threads that a process which ends does not wait for: what blocks, and what is done again and again."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TypeVar

Result = TypeVar("Result")


def in_thread(work: Callable[[], Result]) -> asyncio.Future[Result]:
    """Return what `work` returns or raises. An executor's threads would be joined at the end, however long a server
    takes.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: Result | None = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as raised:  # whatever it is, it is told to whoever waits
            error = raised
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, result, error)

    Thread(target=run, daemon=True).start()
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

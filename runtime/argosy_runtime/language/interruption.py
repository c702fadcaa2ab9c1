"""An end to Python code that may be endless.

The exception reaches the thread between two of its instructions, so it ends any loop of Python's, but no single call of
C that takes long.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(BaseException):
    """The time is over. No exception that code would handle by itself."""


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise Interrupted in this thread if the block takes longer than that."""
    watch = _Watch(threading.get_ident())
    timer = threading.Timer(seconds, watch.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        watch.end()


class _Watch:
    """One block. After `end` nothing is raised any more."""

    def __init__(self, thread: int) -> None:
        self._thread = ctypes.c_ulong(thread)
        self._lock = threading.Lock()
        self._over = False

    def interrupt(self) -> None:
        with self._lock:
            if not self._over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, ctypes.py_object(Interrupted))

    def end(self) -> None:
        with self._lock:
            self._over = True
            # One that is on its way would be raised anywhere.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, None)

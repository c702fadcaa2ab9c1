"""An end to Python code that may be endless.

The exception reaches the thread between two of its instructions, so it ends any loop of Python's, but no single call of
C that takes long.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ITERATIONS = 100


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
        self._sent = False

    def interrupt(self) -> None:
        with self._lock:
            if not self._over:
                self._sent = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, ctypes.py_object(Interrupted))

    def end(self) -> None:
        """Take an exception that is on its way. It comes at the end of an iteration of a loop, at the latest.

        Python's own way to take it back would leave the thread looking for one at every jump and call, for good.
        """
        try:
            with self._lock:
                self._over = True
            for _ in range(_ITERATIONS if self._sent else 0):
                pass
        except Interrupted:
            self._over = True

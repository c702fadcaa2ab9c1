"""Finalization on a thread of its own, which holds no lock.

An object may be collected at any point of any thread, also where that thread holds the lock that its finalization would
need.
"""

import queue
import threading
from collections.abc import Callable


class Reaper:
    """Runs things one after the other, on a thread of its own that begins with the first use."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._runner: threading.Thread | None = None

    def prepare(self) -> None:
        """Start the thread. Never called in a finalizer."""
        if self._runner is not None:
            return
        with self._lock:
            if self._runner is None:
                self._runner = threading.Thread(target=self._run, name="let go", daemon=True)
                self._runner.start()

    def put(self, action: Callable[[], None]) -> None:
        """Run this soon. Safe in a finalizer."""
        self._waiting.put(action)

    def flush(self) -> None:
        """Wait until every finalization that was put so far has run."""
        if self._runner is not None:
            done = threading.Event()
            self._waiting.put(done.set)
            done.wait()

    def _run(self) -> None:
        while True:
            self._waiting.get()()


reaper = Reaper()

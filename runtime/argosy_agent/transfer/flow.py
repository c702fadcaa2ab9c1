"""The course of one fetch: what has arrived, whether to go on, and how long to wait before another try."""

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

from argosy_common.backoff import backoff_s

from .budget import Budget
from .errors import StorageError, StorageStoppedError, TransientError

Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with (bytes here, bytes in all); 0 in all is unknown."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often what may pass is tried without a byte arriving, and the pauses between, in seconds."""

    tries: int = 6
    first_s: float = 0.5
    most_s: float = 20.0

    def pause(self, failed: int, requested: float = 0.0) -> float:
        """Return the pause after `failed` tries, in seconds, where the server `requested` one."""
        grown = backoff_s(failed, self.first_s, self.most_s)
        return max(grown * random.uniform(0.5, 1.0), min(requested, self.most_s))


class Flow:
    """Counts bytes for `progress`, and ends every part when one fails or all is stopped. Thread-safe.

    `budget` is asked for bytes whose number is not known before.
    """

    def __init__(
        self, progress: Progress, stopped: threading.Event, retry: Retry, budget: Budget | None = None
    ) -> None:
        self._progress, self._stopped, self._retry = progress, stopped, retry
        self._budget = budget or Budget()
        self._lock = threading.Lock()
        self._failed = threading.Event()
        self._done = self._total = 0

    def begin(self, done: int, total: int) -> None:
        """Begin with `done` bytes of `total` (0: unknown)."""
        self._done, self._total = done, total
        self._progress(done, total)

    def arrived(self, count: int) -> None:
        """Count `count` more bytes; a negative number where some have to be read again."""
        self.check()
        if not self._total:
            self._budget.take(count)
        with self._lock:
            self._done += count
            self._progress(self._done, self._total)

    def check(self) -> None:
        """Raise StorageStoppedError where nothing more should be read."""
        if self._stopped.is_set() or self._failed.is_set():
            raise StorageStoppedError("stopped")

    def fail(self) -> None:
        """Stop the other parts, as one failed for good."""
        self._failed.set()

    def recover(self) -> None:
        """Allow parts again, as none is under way any more."""
        self._failed.clear()

    def wait(self, error: TransientError, failed: int) -> None:
        """Pause after the `failed`-th try in a row without a byte. Raises StorageError after the last."""
        if failed >= self._retry.tries:
            raise StorageError(f"{error}, {failed} times in a row; it is tried again later") from error
        self.check()
        self._stopped.wait(self._retry.pause(failed, error.after))
        self.check()

    def gather(self, work: Sequence[Callable[[], Result]], at_once: int) -> list[Result]:
        """Run `work`, `at_once` at a time, and return the results.

        Where one fails for good all end, and its error is raised rather than those of the stopped ones.
        """
        if not work:
            return []
        with ThreadPoolExecutor(min(at_once, len(work)), "transfer") as pool:
            running = [pool.submit(task) for task in work]
            try:
                wait(running, return_when=FIRST_EXCEPTION)
            finally:
                self.fail()  # what is still to do has lost its purpose, or there is nothing
                pool.shutdown(wait=True, cancel_futures=True)
                self.recover()
        errors = [error for task in running if not task.cancelled() and (error := task.exception())]
        for error in sorted(errors, key=lambda error: isinstance(error, StorageStoppedError)):
            raise error
        return [task.result() for task in running]

    def persist(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns, tried again while it raises TransientError."""
        failed = 0
        while True:
            try:
                return work()
            except TransientError as error:
                failed += 1
                self.wait(error, failed)

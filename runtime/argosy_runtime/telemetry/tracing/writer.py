"""The thread that writes traces, or sends them: requests never wait for it."""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, Protocol

from argosy_runtime.traces import TraceRecord

from .settings import TraceSetting

_log: Final = logging.getLogger("argosy.trace")
# Records that may wait for the thread, and bytes of their tensors; further records are dropped.
MOST_RECORDS: Final = 8192
MOST_BYTES: Final = 256 << 20


class TraceSink(Protocol):
    """Where records go. Called on the writer's thread only."""

    def write(self, record: TraceRecord, setting: TraceSetting, complete: bool) -> None:
        """Take a record. `complete`: with it those of its setting are a file of their own."""

    def retire(self, setting: TraceSetting) -> None:
        """Note that no record of a setting follows."""

    def close(self) -> None:
        """Write or send what is left."""


class TraceWriter:
    """Passes records to a sink on a thread of its own, which starts with the first of them.

    A record that finds too many before it is dropped, which the log says once until the thread has caught up.
    """

    def __init__(self, sink: Callable[[], TraceSink]) -> None:
        self._make = sink
        self._jobs: SimpleQueue[Callable[[TraceSink], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._records = 0
        self._bytes = 0
        self._dropped = 0

    def write(self, record: TraceRecord, setting: TraceSetting, complete: bool) -> None:
        """Have a record written."""
        with self._lock:
            is_full = self._records >= MOST_RECORDS or self._bytes + record.nbytes > MOST_BYTES
            if is_full:
                self._dropped += 1
            else:
                self._records += 1
                self._bytes += record.nbytes
        if is_full:
            if self._dropped == 1:
                _log.warning("traces come faster than they can be written: some are lost")
            return

        def job(sink: TraceSink) -> None:
            try:
                sink.write(record, setting, complete)
            finally:
                self._written(record)

        self._put(job)

    def retire(self, setting: TraceSetting) -> None:
        """Have the rest of a replaced setting's records written."""
        if self._thread is not None:
            self._put(lambda sink: sink.retire(setting))

    def close(self, seconds: float) -> None:
        """Write what is left, for at most `seconds`."""
        if self._thread is None:
            return
        self._jobs.put(None)
        self._thread.join(seconds)
        if self._thread.is_alive():
            _log.warning("traces could not be written within %g s: some are lost", seconds)

    def _put(self, job: Callable[[TraceSink], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _written(self, record: TraceRecord) -> None:
        with self._lock:
            self._records -= 1
            self._bytes -= record.nbytes
            dropped, self._dropped = (self._dropped, 0) if not self._records else (0, self._dropped)
        if dropped:
            _log.warning("%d traces were lost, since they came faster than they could be written", dropped)

    def _run(self) -> None:
        sink = self._make()
        while (job := self._jobs.get()) is not None:
            try:
                job(sink)
            except Exception:
                _log.exception("a trace could not be written")
        sink.close()

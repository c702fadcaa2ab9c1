"""The library's continuous batching, with an answer for every request whatever becomes of the batch."""

import itertools
import threading
import time
from typing import Any

from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.generation.choices import Step
from argosy_runtime.backends.generation.work import Work, WorkReports, ended, explained
from argosy_runtime.errors import ServingError, cancelled, internal
from argosy_runtime.fifo_cache import FifoCache

SWEEP_SECONDS = 0.05
IDLE_SECONDS = 0.5
"""Seconds between looks at whether an idle batch still runs."""
REPORT_SECONDS = 0.5
"""Seconds between reports of the batch's state, while there is work."""


class Engine:
    """A `ContinuousBatchingManager`, and a thread that hands its outputs to the requests.

    The thread also looks for clients that have gone, and notices when the manager's own thread has died; then every
    request fails with the reason, and the host replaces the instance. `cache_tokens`: how many the cache holds.
    """

    def __init__(self, name: str, manager: Any, cached: FifoCache[str, int], host: Host, cache_tokens: int) -> None:
        self._name = name
        self._manager = manager
        self._cached = cached
        self._host = host
        self._cache_tokens = cache_tokens
        self._reports = WorkReports(name, host)
        self._numbers = itertools.count()
        self._open: dict[str, Work] = {}
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._stopping = False
        manager.start()
        self._thread = threading.Thread(target=self._run, name=f"{name}-outputs", daemon=True)
        self._thread.start()

    def submit(self, work: Work, input_ids: list[int], **settings: Any) -> None:
        """Let a request join the batch. Raises ServingError (UNAVAILABLE) where the batch has ended."""
        key = f"{self._name}-{next(self._numbers)}"
        self._reports.arrive(work)
        with self._lock:
            self._open[key] = work
        try:
            accepted = self._manager.add_request(input_ids, request_id=key, record_timestamps=True, **settings)
        except Exception as error:
            self._take(key)
            raise internal(f"model instance '{self._name}' could not queue the request: {error}") from error
        if accepted is None:
            if self._take(key) is not None:
                raise self._ended()
            return
        self._reports.start(work)
        self._work.set()

    def close(self) -> None:
        """Stop at once. Requests still in the batch fail."""
        self._stopping = True
        self._manager.stop(block=True, hard_stop=True)
        self._work.set()
        self._thread.join()
        self._fail_all()
        self._manager.destroy()

    def _run(self) -> None:
        swept = reported = time.monotonic()
        while not self._stopping:
            if not self._open:
                self._report_state()
                if not self._work.wait(IDLE_SECONDS) and not self._manager.is_running():
                    self._die()
                    return
                self._work.clear()
                continue
            output = self._manager.get_result(timeout=SWEEP_SECONDS)
            if output is not None:
                self._deliver(output)
            elif not self._manager.is_running():
                self._die()
                return
            if time.monotonic() - swept >= SWEEP_SECONDS:
                swept = time.monotonic()
                self._drop_cancelled()
            if time.monotonic() - reported >= REPORT_SECONDS:
                reported = time.monotonic()
                self._report_state()

    def _report_state(self) -> None:
        """Report the batch's state where it has changed. An error there leaves the requests alone."""
        try:
            running, cache = self._batch()
            self._reports.send(max(len(self._open) - running, 0), running, cache, self._cache_tokens)
        except Exception as error:
            self._reports.failed(error)

    def _batch(self) -> tuple[int, float | None]:
        """Return the number of requests that are generated for, and the share of the cache in use.

        The library has no public interface for these; they are only read, while its own thread goes on.
        """
        batch = self._manager.batch_processor
        if batch is None:
            return 0, None
        return len(batch.scheduler.active_requests), 1.0 - float(batch.cache.compute_free_capacity())

    def _deliver(self, output: Any) -> None:
        work = self._open.get(output.request_id)
        if work is None:
            return
        self._count(work, output)
        try:
            if output.error is not None:
                self._take(output.request_id)
                work.on_error(self._failed(output.error))
            elif work.on_step(_step(output, work.cached)) or output.is_finished():
                self._answered(work, output)
        except Exception as error:
            self._take(output.request_id)
            self._manager.cancel_request(output.request_id)
            work.on_error(internal(f"model instance '{self._name}' could not answer: {error}"))

    def _answered(self, work: Work, output: Any) -> None:
        self._take(output.request_id)
        self._reports.answer(work, time.perf_counter())
        if not output.is_finished():
            self._manager.cancel_request(output.request_id)

    def _count(self, work: Work, output: Any) -> None:
        new = self._reports.count(work, len(output.generated_tokens), self._cached.get(output.request_id) or 0)
        if work.metered is not None and output.error is None and new:
            work.metered.began(output.lifespan[0])
            for moment in output.timestamps[-new:]:
                work.metered.generated(1, moment)

    def _drop_cancelled(self) -> None:
        with self._lock:
            waiting = list(self._open.items())
        for key, work in waiting:
            if work.is_cancelled() and self._take(key) is not None:
                self._manager.cancel_request(key)
                work.on_error(cancelled())

    def _die(self) -> None:
        """Fail what is in the batch, and have the instance replaced: nothing brings the library's thread back."""
        if not self._stopping:
            self._fail_all()
            self._host.lost(self._ended())

    def _fail_all(self) -> None:
        with self._lock:
            lost = list(self._open.values())
            self._open.clear()
        for work in lost:
            work.on_error(self._ended())

    def _take(self, key: str) -> Work | None:
        with self._lock:
            return self._open.pop(key, None)

    def _failed(self, reason: str) -> ServingError:
        if self._stopping:
            return self._ended()
        return explained(internal(f"model instance '{self._name}' failed while generating: {reason}"), reason)

    def _ended(self) -> ServingError:
        status = self._manager.background_thread_status
        return ended(self._name, "" if self._stopping else str(status.fatal_error or "its thread ended"))


def _step(output: Any, cached: int) -> Step:
    return Step(output.generated_tokens, output.logprobs, "length" if output.is_finished() else None, cached)

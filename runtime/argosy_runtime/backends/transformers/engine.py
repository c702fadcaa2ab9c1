"""The library's continuous batching, with an answer for every request whatever becomes of the batch."""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from argosy_common import device_errors
from argosy_runtime.backends.contract import EngineState, Host
from argosy_runtime.backends.engines.meter import EngineMeter, MeteredRequest
from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, internal, unavailable
from argosy_runtime.failures.out_of_memory import with_reason
from argosy_runtime.fifo_cache import FifoCache

_log = logging.getLogger(__name__)

OnTokens = Callable[[Sequence[int], Sequence[Any], bool], bool]
"""Called with all tokens so far, what there is to tell of them (`TokenLogprobs`), and whether they are the last.

Returns whether no more are needed.
"""

SWEEP_SECONDS = 0.05
IDLE_SECONDS = 0.5
"""Seconds between looks at whether an idle batch still runs."""
REPORT_SECONDS = 0.5
"""Seconds between reports of the batch's state, while there is work."""


@dataclass(slots=True)
class Ticket:
    """A request in the batch, and how many tokens it has so far. `on_cached` is called once, before its first token,
    with the number of its prompt's tokens that the cache had.
    """

    on_tokens: OnTokens
    on_cached: Callable[[int], None]
    on_error: Callable[[ServingError], None]
    is_cancelled: Callable[[], bool]
    tokens: int = 0
    cached: int = 0
    metered: MeteredRequest | None = None


class Engine:
    """A `ContinuousBatchingManager`, and a thread that hands its outputs to the requests.

    The thread also looks for clients that have gone, and notices when the manager's own thread has died; then every
    request fails with the reason, and the host replaces the instance.
    """

    def __init__(self, name: str, manager: Any, cached: FifoCache[str, int], host: Host) -> None:
        self._name = name
        self._manager = manager
        self._cached = cached
        self._meter = EngineMeter()
        self._host = host
        self._reported: EngineState | None = None
        self._prompt_tokens = 0
        self._generated_tokens = 0
        self._cached_tokens = 0
        self._numbers = itertools.count()
        self._tickets: dict[str, Ticket] = {}
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._stopping = False
        manager.start()
        self._thread = threading.Thread(target=self._run, name=f"{name}-outputs", daemon=True)
        self._thread.start()

    def submit(self, ticket: Ticket, input_ids: list[int], **settings: Any) -> None:
        """Let a request join the batch. Raises ServingError (UNAVAILABLE) where the batch has ended."""
        key = f"{self._name}-{next(self._numbers)}"
        ticket.metered = MeteredRequest(self._meter, len(input_ids), time.perf_counter())
        with self._lock:
            self._tickets[key] = ticket
        try:
            accepted = self._manager.add_request(input_ids, request_id=key, record_timestamps=True, **settings)
        except Exception as error:
            self._take(key)
            raise internal(f"model instance '{self._name}' could not queue the request: {error}") from error
        if accepted is None:
            if self._take(key) is not None:
                raise self._ended()
            return
        with self._lock:  # prompts come from several threads
            self._prompt_tokens += len(input_ids)
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
            if not self._tickets:
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
            waiting = max(len(self._tickets) - running, 0)
            state = EngineState(
                waiting, running, cache, self._prompt_tokens, self._generated_tokens, self._cached_tokens
            )
            if state != self._reported:
                self._reported = state
                self._host.report(msgspec.structs.replace(state, times=self._meter.take()))
        except Exception as error:
            _log.debug("model instance '%s' cannot report its state: %r", self._name, error)

    def _batch(self) -> tuple[int, float | None]:
        """Return the number of requests that are generated for, and the share of the cache in use.

        The library has no public interface for these; they are only read, while its own thread goes on.
        """
        batch = self._manager.batch_processor
        if batch is None:
            return 0, None
        return len(batch.scheduler.active_requests), 1.0 - float(batch.cache.compute_free_capacity())

    def _deliver(self, output: Any) -> None:
        finished = output.is_finished()
        ticket = self._tickets.get(output.request_id)
        if ticket is None:
            return
        self._count(ticket, output)
        try:
            if output.error is not None:
                self._take(output.request_id)
                ticket.on_error(self._failed(output.error))
            elif ticket.on_tokens(output.generated_tokens, output.logprobs, finished) or finished:
                self._answered(ticket, output)
        except Exception as error:
            self._take(output.request_id)
            self._manager.cancel_request(output.request_id)
            ticket.on_error(internal(f"model instance '{self._name}' could not answer: {error}"))

    def _answered(self, ticket: Ticket, output: Any) -> None:
        self._take(output.request_id)
        if ticket.metered is not None:
            ticket.metered.answered(time.perf_counter(), ticket.cached)
        if not output.is_finished():
            self._manager.cancel_request(output.request_id)

    def _count(self, ticket: Ticket, output: Any) -> None:
        if not ticket.tokens:
            ticket.cached = self._cached.get(output.request_id) or 0
            self._cached_tokens += ticket.cached
            ticket.on_cached(ticket.cached)
        new = len(output.generated_tokens) - ticket.tokens
        self._generated_tokens += new
        ticket.tokens += new
        if ticket.metered is not None and output.error is None and new:
            ticket.metered.began(output.lifespan[0])
            for moment in output.timestamps[-new:]:
                ticket.metered.generated(1, moment)

    def _drop_cancelled(self) -> None:
        with self._lock:
            waiting = list(self._tickets.items())
        for key, ticket in waiting:
            if ticket.is_cancelled() and self._take(key) is not None:
                self._manager.cancel_request(key)
                ticket.on_error(ServingError(ErrorKind.CANCELLED, "request was cancelled", FailureReason.CANCELED))

    def _die(self) -> None:
        """Fail what is in the batch, and have the instance replaced: nothing brings the library's thread back."""
        if not self._stopping:
            self._fail_all()
            self._host.lost(self._ended())

    def _fail_all(self) -> None:
        with self._lock:
            lost = list(self._tickets.values())
            self._tickets.clear()
        for ticket in lost:
            ticket.on_error(self._ended())

    def _take(self, key: str) -> Ticket | None:
        with self._lock:
            return self._tickets.pop(key, None)

    def _failed(self, reason: str) -> ServingError:
        if self._stopping:
            return self._ended()
        return _explained(internal(f"model instance '{self._name}' failed while generating: {reason}"), reason)

    def _ended(self) -> ServingError:
        if self._stopping:
            return unavailable(f"model instance '{self._name}' is being unloaded")
        cause = self._manager.background_thread_status.fatal_error or "its thread ended"
        error = unavailable(f"model instance '{self._name}' no longer generates: {cause}", FailureReason.BACKEND)
        return _explained(error, str(cause))


def _explained(error: ServingError, words: str) -> ServingError:
    """Return the error of an engine that has no exceptions, with what its words mean."""
    error.device_error = device_errors.line_of(words)
    return with_reason(error)

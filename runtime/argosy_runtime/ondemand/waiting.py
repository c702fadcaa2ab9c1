"""Requests that wait for their model to be loaded, in order of arrival, bounded in number, bytes and time."""

import logging
from collections.abc import Callable
from typing import Final

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, unavailable
from argosy_runtime.execution.clock import Clock, Timer
from argosy_runtime.histograms import DurationHistogram
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission

_log = logging.getLogger("argosy.ondemand")

MOST_WAITING: Final = 1024
"""Requests that may wait in all."""
MOST_BYTES: Final = 1 << 30
"""Bytes that the tensors of all waiting requests may have together."""

Wake = Callable[[ServingError | None], None]
"""Called once: without an error when the model serves."""
Enter = Callable[[InferRequest, Deliver], Submission]
"""Routes and submits a request whose model serves now. Raises ServingError where it may not enter."""
_US: Final = 1000


class Waiter:
    """One that waits for a model since `since`, a time in nanoseconds, with tensors of `size` bytes."""

    __slots__ = ("model", "since", "size", "timer", "wake")

    def __init__(self, model: str, wake: Wake, since: int, size: int) -> None:
        self.model = model
        self.wake = wake
        self.since = since
        self.size = size
        self.timer: Timer | None = None

    def end(self, error: ServingError | None) -> None:
        """Wake it. An error of its own is logged, so that it keeps no other from being woken."""
        try:
            self.wake(error)
        except Exception:
            _log.exception("what waited for model '%s' failed", self.model)


class Waiters:
    """All waiters, by model. `limit`: nanoseconds that each may wait, unless it sets less."""

    def __init__(self, clock: Clock, limit: int, most: int = MOST_WAITING, most_bytes: int = MOST_BYTES) -> None:
        self._clock = clock
        self._limit = limit
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._waiters: dict[str, dict[Waiter, None]] = {}
        self.waits = DurationHistogram()
        """Times that those waited whose model serves now."""

    def __len__(self) -> int:
        return sum(map(len, self._waiters.values()))

    def add(self, model: str, wake: Wake, limit: int = 0, size: int = 0) -> Waiter:
        """Add a waiter for a model; with `limit` it waits no longer than that.

        Raises ServingError if too many wait, or the tensors of all are too large with its own `size` bytes.
        """
        if len(self) >= self._most:
            text = f"Request for model '{model}': {self._most} requests wait for models to be loaded already"
            raise unavailable(text, FailureReason.REJECTED)
        if self._bytes + size > self._most_bytes:
            text = (
                f"Request for model '{model}': its tensors have {size} bytes, and those of requests that wait for "
                f"models to be loaded {self._bytes}; together they may have {self._most_bytes}"
            )
            raise unavailable(text, FailureReason.REJECTED)
        own = 0 < limit < self._limit
        text = f"Request for model '{model}' has waited {self._limit / 1e9:g} s for it to be loaded"
        error = unavailable("Request timeout expired" if own else text, FailureReason.TIMEOUT)
        waiter = Waiter(model, wake, self._clock.now(), size)
        self._bytes += size
        self._waiters.setdefault(model, {})[waiter] = None
        expiry = waiter.since + (limit if own else self._limit)
        waiter.timer = self._clock.call_at(expiry, lambda: self._expire(waiter, error))
        return waiter

    def waited(self, waiter: Waiter) -> int:
        """Return the nanoseconds since a waiter came."""
        return self._clock.now() - waiter.since

    def leave(self, waiter: Waiter) -> bool:
        """Let one wait no more, without a wake. Return False where it does not wait."""
        waiters = self._waiters.get(waiter.model, {})
        if waiter not in waiters:
            return False
        del waiters[waiter]
        self._bytes -= waiter.size
        if not waiters:
            del self._waiters[waiter.model]
        if waiter.timer is not None:
            waiter.timer.cancel()
        return True

    def wake(self, model: str, error: ServingError | None = None) -> None:
        """Wake those that wait for a model, in the order of their arrival."""
        for waiter in list(self._waiters.get(model, ())):
            if self.leave(waiter):
                if error is None:
                    self.waits.add(self.waited(waiter))
                waiter.end(error)

    def wait_for(self, model: str) -> bool:
        """Return whether any wait for a model."""
        return model in self._waiters

    def close(self, error: ServingError) -> None:
        """Wake all with an error."""
        for model in list(self._waiters):
            self.wake(model, error)

    def _expire(self, waiter: Waiter, error: ServingError) -> None:
        if self.leave(waiter):
            waiter.end(error)


class WaitingRequest:
    """A request that enters its model's queue once that serves.

    Its timeout holds for both: what it has waited here is subtracted from what is left for the queue.
    """

    __slots__ = (
        "_deliver",
        "_enter",
        "_paused",
        "_request",
        "_submission",
        "_waiter",
        "_waiters",
    )

    def __init__(self, request: InferRequest, deliver: Deliver, enter: Enter) -> None:
        self._request = request
        self._deliver = deliver
        self._enter = enter
        self._waiters: Waiters | None = None
        self._waiter: Waiter | None = None
        self._submission: Submission | None = None
        self._paused = False

    def wait(self, waiters: Waiters) -> None:
        """Begin to wait. Raises ServingError if too many do."""
        request = self._request
        size = sum([tensor.nbytes for tensor in request.inputs.values()])
        self._waiter = waiters.add(request.model_name, self._woken, request.timeout_us * _US, size)
        self._waiters = waiters

    def _woken(self, error: ServingError | None) -> None:
        if error is None:
            error = self._submit()
        if error is not None:
            self._deliver(InferResponse(error=error))

    def _submit(self) -> ServingError | None:
        """Submit the request. Return the error of one that may not enter."""
        request = self._request
        if request.timeout_us and self._waiters is not None and self._waiter is not None:
            request.timeout_us = max(1, request.timeout_us - self._waiters.waited(self._waiter) // _US)
        try:
            self._submission = self._enter(request, self._deliver)
        except ServingError as refusal:
            return refusal
        if self._paused:
            self._submission.pause()
        return None

    def cancel(self) -> None:
        """Cancel the request, wherever it is."""
        if self._submission is not None:
            self._submission.cancel()
        elif self._waiters is not None and self._waiter is not None and self._waiters.leave(self._waiter):
            text = f"Request for model '{self._request.model_name}' is cancelled"
            self._deliver(InferResponse(error=ServingError(ErrorKind.CANCELLED, text, FailureReason.CANCELED)))

    def pause(self) -> None:
        """Have the model wait before its next response."""
        self._paused = True
        if self._submission is not None:
            self._submission.pause()

    def resume(self) -> None:
        """Let the model go on."""
        self._paused = False
        if self._submission is not None:
            self._submission.resume()

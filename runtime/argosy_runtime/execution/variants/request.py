"""One request of a routed model.

It stays with one variant from its first response on. Before that, it moves to another one if its variant is unloaded or
fails.
"""

import logging
from collections.abc import Sequence
from typing import Final

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, internal, unavailable
from argosy_runtime.execution.delegating import NOT_YET
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission

from .runner import VariantRunner
from .slot import VariantSlot
from .speeds import MeasurementStart, new_tokens

_log = logging.getLogger("argosy.execution")
_FINAL_REASONS: Final = (FailureReason.TIMEOUT, FailureReason.CANCELED)


def submit(
    runner: VariantRunner, request: InferRequest, size: int, deliver: Deliver, without: Sequence[int] = ()
) -> "RoutedRequest":
    """Start a request; `deliver` gets its responses, the last one final. Variants in `without` cannot answer it."""
    runner.begin()
    routed = RoutedRequest(runner, request, size, deliver, without)
    routed.start()
    return routed


class RoutedRequest:
    """One open request of a routed model, at one variant at a time."""

    __slots__ = (
        "_arrived",
        "_attempt",
        "_cancelled",
        "_deliver",
        "_inputs",
        "_over",
        "_paused",
        "_request",
        "_responded",
        "_runner",
        "_size",
        "_tried",
    )

    def __init__(
        self, runner: VariantRunner, request: InferRequest, size: int, deliver: Deliver, without: Sequence[int]
    ) -> None:
        self._runner = runner
        self._request = request
        # A variant that reshapes its inputs replaces them; another one needs the client's.
        self._inputs = request.inputs if request.template is None else None
        self._size = size
        self._deliver = deliver
        self._arrived = runner.clock.now()
        self._responded = 0
        self._over = False
        self._paused = False
        self._cancelled = False
        self._tried = list(without)
        self._attempt: Attempt | None = None

    def start(self) -> None:
        """Send the request to the variant of the regime, or to another one that can answer."""
        error: ServingError | None = None
        while not self._over and self._attempt is None:
            begun = self._runner.of_sequence(self._request) if not self._tried else None
            index = self._runner.choose(self._tried) if begun is None else begun
            if index is None:
                text = f"Request for unavailable model: '{self._runner.name}': none of its variants can answer"
                self._send(InferResponse(error=error or unavailable(text)))
                return
            error = self._try(index)

    def receive(self, attempt: "Attempt", response: InferResponse) -> None:
        """Pass on a response of a variant, or move to another one."""
        if attempt is not self._attempt:
            return
        attempt.tokens += new_tokens(response)
        if response.final:
            if response.error is None:
                self._runner.measure(attempt.start, self._size, attempt.tokens)
            self._leave(attempt)
        if response.error is not None and self._may_move(response.error):
            attempt.slot.moved += 1
            self.start()
            return
        self._send(response)

    def cancel(self) -> None:
        """Cancel the request at its variant, whose answer ends it; it moves to no other."""
        self._cancelled = True
        if self._attempt is not None:
            self._attempt.submission.cancel()

    def pause(self) -> None:
        """Pause the variant's responses."""
        self._paused = True
        if self._attempt is not None:
            self._attempt.submission.pause()

    def resume(self) -> None:
        """Let the variant's responses go on."""
        self._paused = False
        if self._attempt is not None:
            self._attempt.submission.resume()

    def _try(self, index: int) -> ServingError | None:
        """Submit the request to a variant. Return the error of one that refuses it."""
        slot = self._runner.slots[index]
        self._tried.append(index)
        if self._inputs is not None:
            self._request.inputs = self._inputs
        slot.change(1, self._runner.clock.now())
        attempt = self._attempt = Attempt(self, slot, self._runner.start_measurement(index))
        slot.requests += 1
        try:
            if slot.model is None:
                raise unavailable(f"variant '{slot.name}' of model '{self._runner.name}' was unloaded")
            attempt.submission = slot.model.submit(self._request, attempt.receive)
        except ServingError as error:
            return self._refused(attempt, error)
        except Exception as bug:
            _log.exception("variant '%s' of model '%s' cannot take a request", slot.name, self._runner.name)
            text = f"variant '{slot.name}' of model '{self._runner.name}' cannot take a request: {bug}"
            return self._refused(attempt, internal(text))
        if self._paused:
            attempt.submission.pause()
        return None

    def _refused(self, attempt: "Attempt", error: ServingError) -> ServingError:
        """Leave the variant that refuses the request, and end the request unless another one may take it."""
        self._leave(attempt)
        if error.kind is not ErrorKind.UNAVAILABLE:
            self._send(InferResponse(error=error))
        return error

    def _may_move(self, error: ServingError) -> bool:
        """Return whether another variant may answer: nothing was sent, and its variant is gone or full."""
        if self._cancelled or self._responded or error.reason in _FINAL_REASONS:
            return False
        if not (error.instance_lost or error.kind is ErrorKind.UNAVAILABLE):
            return False
        return self._runner.has_other(self._tried)

    def _leave(self, attempt: "Attempt") -> None:
        attempt.slot.change(-1, self._runner.clock.now())
        attempt.submission = NOT_YET  # It refers back to this request: without the cycle all of it is freed at once.
        self._attempt = None

    def _send(self, response: InferResponse) -> None:
        if self._over:
            return
        response.model_name = self._runner.name
        response.model_version = self._runner.version
        response.id = self._request.id
        if response.final:
            self._over = True
            self._runner.ended(self._request, self._size, self._arrived, self._responded, response)
        else:
            now = self._runner.clock.now()
            if not self._request.is_shadow:
                self._runner.statistics.responded(self._arrived, self._responded, now)
            self._responded = now
        try:
            self._deliver(response)
        except Exception:
            # The client cannot take it; the rest of the request is handled all the same.
            _log.exception("a response of model '%s' could not be delivered", self._runner.name)


class Attempt:
    """A request's time at one variant."""

    __slots__ = ("_request", "slot", "start", "submission", "tokens")

    def __init__(self, request: RoutedRequest, slot: VariantSlot, start: MeasurementStart) -> None:
        self._request = request
        self.slot = slot
        self.start = start
        self.tokens = 0
        self.submission: Submission = NOT_YET

    def receive(self, response: InferResponse) -> None:
        """Pass a response on."""
        self._request.receive(self, response)

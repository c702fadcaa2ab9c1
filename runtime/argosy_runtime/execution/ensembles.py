"""Runs ensembles: drives the state machine of `scheduling.ensemble` with real calls of this server's models."""

import logging
from typing import Protocol

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ErrorKind, FailureReason, ServingError
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.scheduling.ensemble import EnsembleRun, Progress, StepCall
from argosy_runtime.scheduling.ensemble_steps import EnsembleSteps
from argosy_runtime.telemetry.statistics import ModelStatistics

from .clock import Clock

_log = logging.getLogger("argosy.execution")


class Models(Protocol):
    """The models of an ensemble's steps."""

    def submit_step(self, index: int, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request of a step; the responses go to `deliver`. Raises ServingError."""

    def hold(self) -> None:
        """A request begins that may need any of them."""

    def release(self) -> None:
        """It is over."""


class EnsembleRunner:
    """One version of an ensemble. Steps of different requests overlap freely; tensors are passed on, never copied.

    `running`: requests on their way.
    """

    def __init__(
        self, steps: EnsembleSteps, version: int, models: Models, statistics: ModelStatistics, clock: Clock
    ) -> None:
        self.name = steps.name
        self.version = str(version)
        self.models = models
        self.clock = clock
        self.statistics = statistics
        self.running = 0
        self._steps = steps

    def submit(self, request: InferRequest, size: int, deliver: Deliver) -> "EnsembleRequest":
        """Start a request; `deliver` gets its responses, the last one final."""
        run = EnsembleRun(self._steps, request)
        running = EnsembleRequest(self, run, request, size, deliver)
        self.models.hold()
        self.running += 1
        running.follow(run.start())
        return running

    def ended(self, size: int, arrived: int, responded: int, response: InferResponse) -> None:
        """A request has its last response; the one before came at `responded`, 0 where there was none."""
        self.running -= 1
        self.models.release()
        statistics, now, error = self.statistics, self.clock.now(), response.error
        total = now - arrived
        if error is not None:
            statistics.failed(total, error.reason or FailureReason.BACKEND)
            return
        statistics.took(total, responded, now, response.is_empty)
        statistics.succeeded(1, total, 0, size)
        # An ensemble does nothing but wait for its steps, which tell their own queueing and computing apart.
        statistics.ran(1, size, ExecutionTimes(0, total, 0))


class EnsembleRequest:
    """One request on its way through an ensemble, and the calls of steps that are open."""

    __slots__ = (
        "_arrived",
        "_deliver",
        "_ensemble",
        "_over",
        "_paused",
        "_request",
        "_responded",
        "_run",
        "_size",
        "open",
    )

    def __init__(
        self, ensemble: EnsembleRunner, run: EnsembleRun, request: InferRequest, size: int, deliver: Deliver
    ) -> None:
        self._ensemble = ensemble
        self._run = run
        self._request = request
        self._size = size
        self._deliver = deliver
        self._arrived = ensemble.clock.now()
        self._responded = 0
        self._over = False
        self._paused = False
        self.open: set[OpenCall] = set()

    def follow(self, progress: Progress) -> None:
        """Do what the state machine says comes next."""
        for call in progress.calls:
            if self._over:
                return
            self._call(call)
        for response in progress.responses:
            self._send(response)

    def receive(self, call: StepCall, response: InferResponse) -> None:
        """A step has answered."""
        if not self._over:
            self.follow(self._run.receive(call, response))

    def cancel(self) -> None:
        text = f"{self._request.log_prefix}Request was cancelled"
        self._send(InferResponse(error=ServingError(ErrorKind.CANCELLED, text, FailureReason.CANCELED)))

    def pause(self) -> None:
        """See `Submission`: the steps wait, those that are called later too."""
        self._paused = True
        for call in list(self.open):
            call.submission.pause()

    def resume(self) -> None:
        self._paused = False
        for call in list(self.open):
            call.submission.resume()

    def _call(self, call: StepCall) -> None:
        step = OpenCall(self, call)
        self.open.add(step)
        try:
            submission = self._ensemble.models.submit_step(call.step.index, call.request, step.receive)
        except ServingError as error:
            text = f"in ensemble '{self._ensemble.name}', {error.message}"
            step.receive(InferResponse(error=ServingError(error.kind, text, error.reason)))
            return
        if step not in self.open:
            return
        step.submission = submission
        if self._over:
            submission.cancel()
        elif self._paused:
            submission.pause()

    def _send(self, response: InferResponse) -> None:
        if self._over:
            return
        response.model_name = self._ensemble.name
        response.model_version = self._ensemble.version
        response.id = self._request.id
        if response.final:
            self._over = True
            self._ensemble.ended(self._size, self._arrived, self._responded, response)
        else:
            now = self._ensemble.clock.now()
            self._ensemble.statistics.responded(self._arrived, self._responded, now)
            self._responded = now
        if response.error is not None:
            for call in list(self.open):
                call.submission.cancel()
        try:
            self._deliver(response)
        except Exception:
            # The client cannot take it; what follows of this request is seen to all the same.
            _log.exception("a response of ensemble '%s' could not be delivered", self._ensemble.name)


class OpenCall:
    """A step's call that is not over."""

    __slots__ = ("_call", "_request", "submission")

    def __init__(self, request: EnsembleRequest, call: StepCall) -> None:
        self._request = request
        self._call = call
        self.submission: Submission = _NOT_YET

    def receive(self, response: InferResponse) -> None:
        if response.final:
            self._request.open.discard(self)
            self.submission = _NOT_YET  # It leads back here: without the circle all of it goes at once.
        self._request.receive(self._call, response)


class _NotYet:
    """Stands for a call while it is being made."""

    __slots__ = ()

    def cancel(self) -> None:
        """See `Submission`."""

    def pause(self) -> None:
        """See `Submission`."""

    def resume(self) -> None:
        """See `Submission`."""


_NOT_YET = _NotYet()

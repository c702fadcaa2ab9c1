"""Runs ensembles: drives the state machine of `scheduling.ensemble` with real calls of this server's models."""

from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Protocol

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ErrorKind, FailureReason, ServingError
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.scheduling.ensemble import EnsembleRun, EnsembleSteps, Progress, StepCall
from argosy_runtime.telemetry.statistics import ModelStatistics


class Models(Protocol):
    """The models of an ensemble's steps."""

    def submit_step(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a step's request; the responses go to `deliver`. Raises ServingError."""

    def hold(self) -> None:
        """A request begins that may need any of them."""

    def release(self) -> None:
        """It is over."""


@dataclass(eq=False)
class EnsembleSubmission:
    """One request on its way through an ensemble, and the calls of steps that are open."""

    runner: "EnsembleRunner"
    run: EnsembleRun
    request: InferRequest
    deliver: Deliver
    arrived: int
    size: int
    open: dict[StepCall, Submission] = field(default_factory=dict)
    over: bool = False

    def cancel(self) -> None:
        """See `Submission`."""
        self.runner.cancel(self)

    def pause(self) -> None:
        """See `Submission`: the steps that are open now wait."""
        for submission in list(self.open.values()):
            submission.pause()

    def resume(self) -> None:
        """See `Submission`."""
        for submission in list(self.open.values()):
            submission.resume()


class EnsembleRunner:
    """One version of an ensemble. Steps of different requests overlap freely; tensors are passed on, never copied."""

    def __init__(self, steps: EnsembleSteps, version: int, models: Models, statistics: ModelStatistics) -> None:
        self._steps = steps
        self._version = str(version)
        self._models = models
        self._statistics = statistics

    def submit(self, request: InferRequest, size: int, deliver: Deliver) -> EnsembleSubmission:
        """Start a request; `deliver` gets its responses, the last one final."""
        run = EnsembleRun(self._steps, request, self._version)
        job = EnsembleSubmission(self, run, request, deliver, monotonic_ns(), size)
        self._models.hold()
        self._follow(job, run.start())
        return job

    def cancel(self, job: EnsembleSubmission) -> None:
        """The client has gone."""
        if not job.over:
            error = ServingError(
                ErrorKind.CANCELLED, f"{job.request.log_prefix}Request was cancelled", FailureReason.CANCELED
            )
            self._send(job, InferResponse("", "", error=error))
            self._cancel_open(job)

    def _follow(self, job: EnsembleSubmission, progress: Progress) -> None:
        for call in progress.calls:
            self._call(job, call)
        for response in progress.responses:
            self._send(job, response)
            if response.error is not None:
                self._cancel_open(job)

    def _call(self, job: EnsembleSubmission, call: StepCall) -> None:
        finished = False

        def receive(response: InferResponse) -> None:
            nonlocal finished
            if response.final:
                finished = True
                job.open.pop(call, None)
            if not job.over:
                self._follow(job, job.run.receive(call, response))

        try:
            submission = self._models.submit_step(call.request, receive)
        except ServingError as error:
            receive(InferResponse("", "", error=self._blame(error, call)))
            return
        if not finished:
            job.open[call] = submission

    def _blame(self, error: ServingError, call: StepCall) -> ServingError:
        return ServingError(error.kind, f"in ensemble '{self._steps.name}', {error.message}", error.reason)

    def _cancel_open(self, job: EnsembleSubmission) -> None:
        for submission in list(job.open.values()):
            submission.cancel()
        job.open.clear()

    def _send(self, job: EnsembleSubmission, response: InferResponse) -> None:
        if job.over:
            return
        response.model_name = self._steps.name
        response.model_version = self._version
        response.id = job.request.id
        if response.final:
            job.over = True
            self._models.release()
            self._count(job, response)
        job.deliver(response)

    def _count(self, job: EnsembleSubmission, response: InferResponse) -> None:
        total = monotonic_ns() - job.arrived
        if response.error is not None:
            self._statistics.failed(total, response.error.reason or FailureReason.BACKEND)
            return
        self._statistics.succeeded(1, total, 0, job.size)
        # An ensemble does nothing but wait for its steps, which tell their own queueing and computing apart.
        self._statistics.ran(1, job.size, ExecutionTimes(0, total, 0))

"""Execution of ensembles: the state machine of `scheduling.ensemble` with real calls of this server's models.

Behind a decoupled step each of its answers is a call, and several instances of a model may run the calls of one request
at once. What they answer reaches the state machine in the order of the calls, so a stream keeps its order.
"""

import logging
from collections import deque
from functools import partial
from typing import Protocol

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.scheduling.ensemble import EnsembleRun, Progress, StepCall
from argosy_runtime.scheduling.ensemble_steps import NO_STREAM, EnsembleSteps
from argosy_runtime.scheduling.limits.step_limits import StepLimits
from argosy_runtime.scheduling.ordering import ResponseOrder
from argosy_runtime.scheduling.queued_request import cancellation
from argosy_runtime.telemetry.statistics import ModelStatistics

from .clock import Clock
from .delegating import NOT_YET, count_delegated

_log = logging.getLogger("argosy.execution")


class Steps(Protocol):
    """The models of an ensemble's steps, for one request or for all."""

    def submit_step(self, index: int, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request of a step; `deliver` gets the responses. Raises ServingError."""


class Models(Protocol):
    """What keeps the models of an ensemble's steps."""

    def hold(self) -> None:
        """Keep the steps' versions loaded for a request that begins."""

    def release(self) -> None:
        """Release the steps' versions: a request has ended."""


class EnsembleRunner:
    """One version of an ensemble. Steps of different requests overlap freely; tensors are passed on, never copied.

    `running`: the number of open requests. `limits` are those of the steps, None without a limit.
    """

    def __init__(
        self,
        steps: EnsembleSteps,
        version: int,
        models: Models,
        statistics: ModelStatistics,
        clock: Clock,
        max_inflight_requests: int = 0,
    ) -> None:
        self.name = steps.name
        self.version = str(version)
        self.models = models
        self.clock = clock
        self.statistics = statistics
        self.running = 0
        self.limits: StepLimits[OpenCall] | None = None
        if max_inflight_requests:
            self.limits = StepLimits(max_inflight_requests, len(steps.steps))
        self._steps = steps
        # Calls that waited and may start. One that is answered at once makes room for the next in the same loop.
        self._admitted: deque[OpenCall] = deque()
        self._starting = False

    def submit(self, request: InferRequest, size: int, deliver: Deliver, steps: Steps) -> "EnsembleRequest":
        """Start a request, whose steps run by `steps`; `deliver` gets its responses, the last one final."""
        run = EnsembleRun(self._steps, request)
        running = EnsembleRequest(self, run, request, size, deliver, steps)
        self.models.hold()
        self.running += 1
        if request.trace is not None:
            request.trace.begin(self.name, self.version, request, self.clock.now())
        running.follow(run.start())
        return running

    def closed(self, step: int) -> None:
        """Start the next call of a step in place of one that has ended, where calls are limited."""
        assert self.limits is not None
        waiting = self.limits.leave(step)
        if waiting is not None:
            self._admitted.append(waiting)
        if self._starting:
            return
        self._starting = True
        try:
            while self._admitted:
                self._admitted.popleft().start()
        finally:
            self._starting = False

    def ended(self, request: InferRequest, size: int, arrived: int, responded: int, response: InferResponse) -> None:
        """Count a request with its last response; the one before came at `responded`, 0 where there was none."""
        self.running -= 1
        self.models.release()
        count_delegated(self.statistics, request, self.clock.now(), size, arrived, responded, response)


class EnsembleRequest:
    """One open request of an ensemble, and the open calls of its steps."""

    __slots__ = (
        "_arrived",
        "_deliver",
        "_ensemble",
        "_held",
        "_orders",
        "_over",
        "_paused",
        "_request",
        "_responded",
        "_run",
        "_size",
        "_steps",
        "limits",
        "open",
    )

    def __init__(
        self,
        ensemble: EnsembleRunner,
        run: EnsembleRun,
        request: InferRequest,
        size: int,
        deliver: Deliver,
        steps: Steps,
    ) -> None:
        self._ensemble = ensemble
        self._steps = steps
        self._run = run
        self._request = request
        self._size = size
        self._deliver = deliver
        self._arrived = ensemble.clock.now()
        self._responded = 0
        self._over = False
        self._paused = False
        # How many calls wait, by the decoupled step that drives them: it must not send more meanwhile.
        self._held: dict[int, int] = {}
        # The order of the calls of each step behind a decoupled one.
        self._orders: dict[int, ResponseOrder] = {}
        self.limits = ensemble.limits
        self.open: set[OpenCall] = set()

    def follow(self, progress: Progress) -> None:
        """Make the calls and send the responses that the state machine returned."""
        for call in progress.calls:
            if self._over:
                return
            self._call(call)
        for response in progress.responses:
            self._send(response)

    def receive(self, call: StepCall, response: InferResponse) -> None:
        """Pass a step's answer to the state machine."""
        if not self._over:
            self.follow(self._run.receive(call, response))

    def cancel(self) -> None:
        self._send(InferResponse(error=cancellation(self._request)))

    def pause(self) -> None:
        """Pause the open steps, and those that are called later."""
        self._paused = True
        for call in list(self.open):
            call.submission.pause()

    def resume(self) -> None:
        self._paused = False
        for call in list(self.open):
            if not self._held.get(call.index):
                call.submission.resume()

    def closed(self, step: int) -> None:
        """Note that a call has ended, which made room for another call of its step."""
        self._ensemble.closed(step)

    def _call(self, call: StepCall) -> None:
        step = OpenCall(self, call)
        if call.step.stream != NO_STREAM:
            order = self._orders.setdefault(step.index, ResponseOrder())
            step.in_turn = order.expect(partial(self.receive, call))
        self.open.add(step)
        if self.limits is None or self.limits.enter(step.index, step):
            self._start(step, call)
        else:
            step.waits = True
            self._hold(call.step.stream)

    def start(self, step: "OpenCall", call: StepCall) -> None:
        """Start a call that waited, unless its request has ended since."""
        if self._over:
            self.closed(step.index)
            return
        self._let_go(call.step.stream)
        self._start(step, call)

    def _hold(self, producer: int) -> None:
        """Pause the decoupled step that drives a waiting call."""
        held = self._held[producer] = self._held.get(producer, 0) + 1
        if held == 1:
            for call in list(self.open):
                if call.index == producer:
                    call.submission.pause()

    def _let_go(self, producer: int) -> None:
        self._held[producer] -= 1
        if self._held[producer] or self._paused:
            return
        for call in list(self.open):
            if call.index == producer:
                call.submission.resume()

    def _withdraw(self, limits: "StepLimits[OpenCall]") -> None:
        """Remove the calls that wait, which nothing needs any more, and let the steps that drive them go on."""
        for call in list(self.open):
            if call.waits:
                limits.withdraw(call.index, call)
                self.open.discard(call)
        for call in list(self.open):
            if self._held.get(call.index):
                call.submission.resume()
        self._held.clear()

    def _start(self, step: "OpenCall", call: StepCall) -> None:
        try:
            submission = self._steps.submit_step(call.step.index, call.request, step.receive)
        except ServingError as error:
            step.receive(InferResponse(error=error))
            return
        if step not in self.open:
            return
        step.submission = submission
        if self._over:
            submission.cancel()
        elif self._paused or self._held.get(step.index):
            submission.pause()

    def _send(self, response: InferResponse) -> None:
        if self._over:
            return
        response.model_name = self._ensemble.name
        response.model_version = self._ensemble.version
        response.id = self._request.id
        if response.final:
            self._over = True
            self._orders.clear()
            if self.limits is not None:
                self._withdraw(self.limits)
            self._ensemble.ended(self._request, self._size, self._arrived, self._responded, response)
        else:
            now = self._ensemble.clock.now()
            if not self._request.is_shadow:
                self._ensemble.statistics.responded(self._arrived, self._responded, now)
            self._responded = now
        if response.error is not None:
            for call in list(self.open):
                call.submission.cancel()
        trace = self._request.trace
        if trace is not None:
            trace.responded(response)
        is_final = response.final
        try:
            self._deliver(response)
        except Exception:
            # The client cannot take it; the rest of the request is handled all the same.
            _log.exception("a response of ensemble '%s' could not be delivered", self._ensemble.name)
        if trace is not None and is_final:
            trace.answered(self._ensemble.clock.now(), running=False)


class OpenCall:
    """An open call of a step, by its `index`. It `waits` while as many others of its step are open as may be. `in_turn`
    takes its answers where they may have to wait for those of earlier calls.
    """

    __slots__ = ("_call", "_request", "in_turn", "index", "submission", "waits")

    def __init__(self, request: EnsembleRequest, call: StepCall) -> None:
        self._request = request
        self._call = call
        self.index = call.step.index
        self.waits = False
        self.in_turn: Deliver | None = None
        self.submission: Submission = NOT_YET

    def start(self) -> None:
        """Start the call, which waited."""
        self.waits = False
        self._request.start(self, self._call)

    def receive(self, response: InferResponse) -> None:
        """Take an answer. An error ends the request and waits for nothing."""
        in_turn = self.in_turn if response.error is None else None
        if response.final:
            self._request.open.discard(self)
            # These refer back to this call: without the cycles all of it is freed at once.
            self.submission, self.in_turn = NOT_YET, None
        if in_turn is not None:
            in_turn(response)
        else:
            self._request.receive(self._call, response)
        if response.final and self._request.limits is not None:
            self._request.closed(self.index)

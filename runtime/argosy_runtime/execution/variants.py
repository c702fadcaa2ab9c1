"""Requests of routed models: the regimes of `scheduling.variants` with real models, which are woken and put to sleep.

A request stays with one variant from its first response on. Before that, it moves to another one if its variant is
unloaded or fails.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, internal, unavailable
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.modelconfig.variants import VariantRouting
from argosy_runtime.scheduling.variants.regimes import Regimes, VariantState
from argosy_runtime.scheduling.variants.weights import Weights
from argosy_runtime.telemetry.series import VariantSeries
from argosy_runtime.telemetry.statistics import ModelStatistics

from .clock import Clock, Timer

_log = logging.getLogger("argosy.execution")
_RETRY_NS: Final = 10_000_000_000
"""After a failed wake a variant is left for ten seconds."""
_FINAL_REASONS: Final = (FailureReason.TIMEOUT, FailureReason.CANCELED)


class VariantModel(Protocol):
    """A version of a model that serves as a variant."""

    @property
    def ready(self) -> bool:
        """True if it can answer, perhaps after it was woken or restarted."""

    @property
    def takes_batches(self) -> bool:
        """True if an instance can take requests now."""

    @property
    def asleep(self) -> bool:
        """True if it is asleep."""

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request; `deliver` gets the responses. Raises ServingError."""

    async def sleep(self) -> None:
        """Free the memory of its devices as far as it can, once its requests have ended."""

    async def wake(self) -> None:
        """Take requests again. Raises ServingError."""


class VariantSlot:
    """One variant of a routed model, with its counters. `model` is None while nothing serves it.

    `in_flight`: its requests now; `requests`: those that it was sent; `moved`: those that it lost to another variant.
    `used`: when it was last used, needed, loaded or woken; `was_ready`: whether it was ready at the last look.
    """

    def __init__(self, name: str, now: int) -> None:
        self.name = name
        self.model: VariantModel | None = None
        self.in_flight = 0
        self.requests = 0
        self.moved = 0
        self.used = now
        self.was_ready = False
        self.failed_at: int | None = None
        self.waking = False
        self.task: asyncio.Task[None] | None = None

    @property
    def state(self) -> VariantState:
        """What it can do with a request now."""
        model = self.model
        if model is None or not model.ready:
            return VariantState.ABSENT
        if model.asleep:
            return VariantState.WAKING if self.waking else VariantState.ASLEEP
        return VariantState.READY if model.takes_batches else VariantState.WAKING


class VariantRunner:
    """The requests of one version of a routed model. `in_flight`: all of them that are open."""

    def __init__(
        self, name: str, version: int, routing: VariantRouting, statistics: ModelStatistics, clock: Clock
    ) -> None:
        now = clock.now()
        self.name = name
        self.version = str(version)
        self.clock = clock
        self.statistics = statistics
        self.in_flight = 0
        self.slots = [VariantSlot(variant.model, now) for variant in routing.variants]
        dwell = round(routing.min_dwell_seconds * 1e9)
        self.regimes = Regimes(len(self.slots), routing.limits, routing.hysteresis, dwell, now)
        self._weights = Weights(routing.weights) if routing.weights is not None else None
        self._takes_requests = [variant.weight != 0 for variant in routing.variants]
        self._idle_ns = 0 if self._weights is not None else round(routing.idle_timeout_seconds * 1e9)
        self._timer: Timer | None = None
        self._timer_at = 0
        self._closed = False

    def follow(self, models: Sequence[VariantModel | None]) -> None:
        """Use these models from now on, in the order of the variants."""
        for slot, model in zip(self.slots, models, strict=True):
            slot.model = model
            slot.failed_at = None
        self.advance()

    def continue_from(self, former: "VariantRunner") -> None:
        """Go on in the regime, and with the counters, of the runner that this one replaces."""
        self.regimes.restore(former.regimes.current, former.regimes.since)
        by_name = {slot.name: slot for slot in former.slots}
        for slot in self.slots:
            if slot.name in by_name:
                slot.requests, slot.moved = by_name[slot.name].requests, by_name[slot.name].moved

    @property
    def states(self) -> list[VariantState]:
        """What each variant can do now."""
        return [slot.state for slot in self.slots]

    @property
    def ready(self) -> bool:
        """True if any variant can answer, perhaps once it is awake."""
        # Called with every request: a loop costs half of what a generator does.
        for slot in self.slots:  # noqa: SIM110
            if slot.model is not None and slot.model.ready:
                return True
        return False

    def submit(self, request: InferRequest, size: int, deliver: Deliver) -> "RoutedRequest":
        """Start a request; `deliver` gets its responses, the last one final."""
        self.in_flight += 1
        self.advance()
        routed = RoutedRequest(self, request, size, deliver)
        routed.start()
        return routed

    def choose(self, tried: Sequence[int]) -> int | None:
        """Return the variant for a request, which is woken if it sleeps; None if no other than the tried can answer."""
        states = self.states
        chooser = self.regimes if self._weights is None else self._weights
        index = chooser.choose(states, tried)
        if index is not None:
            self.slots[index].used = self.clock.now()
            self._wake(index)
        return index

    def has_other(self, tried: Sequence[int]) -> bool:
        """Return whether `choose` would find a variant, and change nothing."""
        return any(
            self._takes_requests[index] and slot.state is not VariantState.ABSENT
            for index, slot in enumerate(self.slots)
            if index not in tried
        )

    def ended(self, size: int, arrived: int, responded: int, response: InferResponse) -> None:
        """Count a request with its last response; the one before came at `responded`, 0 where there was none."""
        self.in_flight -= 1
        statistics, now, error = self.statistics, self.clock.now(), response.error
        total = now - arrived
        if error is not None:
            statistics.failed(total, error.reason or FailureReason.BACKEND)
        else:
            statistics.took(total, responded, now, response.is_empty)
            statistics.succeeded(1, total, 0, size)
            # It only waits for its variants, whose own statistics separate queueing from computing.
            statistics.ran(1, size, ExecutionTimes(0, total, 0))
        self.advance()

    def advance(self) -> None:
        """Change the regime if it is time to, wake what will be needed, and put to sleep what was not used for long."""
        now = self.clock.now()
        self.regimes.advance(self.in_flight, self.states, now)
        needed = self.regimes.needed(self.in_flight, now)
        for index, slot in enumerate(self.slots):
            is_ready = slot.state is VariantState.READY
            # Requests to the variant itself, and loads, are no use of the routed model, but are worth its idle time.
            if index in needed or slot.in_flight or (is_ready and not slot.was_ready):
                slot.used = now
            slot.was_ready = is_ready
            if index in needed:
                self._wake(index)
            elif self._may_sleep(slot, now):
                self._begin(slot, self._sleep)
        self._set_timer(now)

    def series(self) -> list[VariantSeries]:
        """Return each variant as the metrics describe it."""
        limits = self.regimes.limits
        age_s = (self.clock.now() - self.regimes.since) / 1e9
        return [
            VariantSeries(
                slot.name,
                slot.in_flight,
                slot.requests,
                slot.moved,
                slot.state.value,
                age_s if index == self.regimes.current else None,
                limits[index] if index < len(limits) else None,
            )
            for index, slot in enumerate(self.slots)
        ]

    def close(self) -> None:
        """Change nothing any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _may_sleep(self, slot: VariantSlot, now: int) -> bool:
        return bool(self._idle_ns) and slot.state is VariantState.READY and now - slot.used >= self._idle_ns

    def _wake(self, index: int) -> None:
        slot, now = self.slots[index], self.clock.now()
        if slot.state is VariantState.ASLEEP and (slot.failed_at is None or now - slot.failed_at >= _RETRY_NS):
            self._begin(slot, self._awaken)

    def _begin(self, slot: VariantSlot, work: Callable[[VariantSlot], Coroutine[Any, Any, None]]) -> None:
        if slot.task is None and not self._closed:
            slot.task = asyncio.get_running_loop().create_task(work(slot))

    async def _awaken(self, slot: VariantSlot) -> None:
        model, slot.waking = slot.model, True
        failed: ServingError | None = None
        try:
            if model is not None:
                await model.wake()
        except ServingError as error:
            failed = error
        finally:  # also where the model's unloading cancels it
            slot.task, slot.waking = None, False
        slot.failed_at = None if failed is None else self.clock.now()
        if failed is not None:
            _log.error("variant '%s' of model '%s' cannot be woken: %s", slot.name, self.name, failed.message)
        self.advance()

    async def _sleep(self, slot: VariantSlot) -> None:
        model = slot.model
        try:
            if model is not None:
                _log.info("variant '%s' of model '%s' goes to sleep", slot.name, self.name)
                await model.sleep()
        except ServingError as error:
            _log.error("variant '%s' of model '%s' cannot sleep: %s", slot.name, self.name, error.message)
        finally:
            slot.task = None
        slot.used = self.clock.now()
        self.advance()

    def _set_timer(self, now: int) -> None:
        """Set the timer for the next change that no request brings about. An earlier one stays, and sets the next."""
        change = self.regimes.next_change(now)
        times = [] if change is None else [change]
        if self._idle_ns:
            times += [slot.used + self._idle_ns for slot in self.slots if slot.state is VariantState.READY]
        later = min([time for time in times if time > now], default=None)
        if later is None or self._closed or (self._timer is not None and self._timer_at <= later):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = later
        self._timer = self.clock.call_at(later, self._wake_up)

    def _wake_up(self) -> None:
        self._timer = None
        self.advance()


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

    def __init__(self, runner: VariantRunner, request: InferRequest, size: int, deliver: Deliver) -> None:
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
        self._tried: list[int] = []
        self._attempt: Attempt | None = None

    def start(self) -> None:
        """Send the request to the variant of the regime, or to another one that can answer."""
        error: ServingError | None = None
        while not self._over and self._attempt is None:
            index = self._runner.choose(self._tried)
            if index is None:
                text = f"Request for unavailable model: '{self._runner.name}': none of its variants can answer"
                self._send(InferResponse(error=error or unavailable(text)))
                return
            error = self._try(index)

    def receive(self, attempt: "Attempt", response: InferResponse) -> None:
        """Pass on a response of a variant, or move to another one."""
        if attempt is not self._attempt:
            return
        if response.final:
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
        attempt = self._attempt = Attempt(self, slot)
        slot.in_flight += 1
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
        attempt.slot.in_flight -= 1
        attempt.submission = _NOT_YET  # It refers back to this request: without the cycle all of it is freed at once.
        self._attempt = None

    def _send(self, response: InferResponse) -> None:
        if self._over:
            return
        response.model_name = self._runner.name
        response.model_version = self._runner.version
        response.id = self._request.id
        if response.final:
            self._over = True
            self._runner.ended(self._size, self._arrived, self._responded, response)
        else:
            now = self._runner.clock.now()
            self._runner.statistics.responded(self._arrived, self._responded, now)
            self._responded = now
        try:
            self._deliver(response)
        except Exception:
            # The client cannot take it; the rest of the request is handled all the same.
            _log.exception("a response of model '%s' could not be delivered", self._runner.name)


class Attempt:
    """A request's time at one variant."""

    __slots__ = ("_request", "slot", "submission")

    def __init__(self, request: RoutedRequest, slot: VariantSlot) -> None:
        self._request = request
        self.slot = slot
        self.submission: Submission = _NOT_YET

    def receive(self, response: InferResponse) -> None:
        """Pass a response on."""
        self._request.receive(self, response)


class _NotYet:
    """Submission of a request that is being submitted, or has ended."""

    __slots__ = ()

    def cancel(self) -> None:
        """Do nothing: there is no request."""

    def pause(self) -> None:
        """Do nothing: the caller checks once it is submitted."""

    def resume(self) -> None:
        """Do nothing: the caller checks once it is submitted."""


_NOT_YET = _NotYet()

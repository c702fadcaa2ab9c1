"""The variants of a routed model: which one takes a request, which are woken, which go to sleep."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from argosy_common.regimes import Regimes, VariantState
from argosy_runtime.errors import ServingError
from argosy_runtime.execution.clock import Clock, Timer
from argosy_runtime.execution.delegating import count_delegated
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.modelconfig.parameters.variants import VariantRouting
from argosy_runtime.scheduling.variants.weights import Weights
from argosy_runtime.telemetry.series import VariantSeries
from argosy_runtime.telemetry.statistics import ModelStatistics

from .slot import VariantModel, VariantSlot
from .speeds import MeasurementStart, VariantSpeeds

_log = logging.getLogger("argosy.execution")
_RETRY_NS: Final = 10_000_000_000
"""After a failed wake a variant is left for ten seconds."""


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
        self._speeds = VariantSpeeds(self.slots, routing.limits)
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
        state, names = former.regimes.state, [slot.name for slot in self.slots]
        regime = former.slots[state.current].name
        self.regimes.resume(state._replace(current=names.index(regime)) if regime in names else state)
        by_name = {slot.name: slot for slot in former.slots}
        for slot in self.slots:
            if slot.name in by_name:
                slot.requests, slot.moved = by_name[slot.name].requests, by_name[slot.name].moved
        self._speeds.continue_from(former._speeds)

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

    def begin(self) -> None:
        """Count a request that begins."""
        self.in_flight += 1
        self.advance()

    def choose(self, tried: Sequence[int]) -> int | None:
        """Return the variant for a request, which is woken if it sleeps; None if no other than the tried can answer."""
        states = self.states
        chooser = self.regimes if self._weights is None else self._weights
        index = chooser.choose(states, tried)
        if index is not None:
            self.slots[index].used = self.clock.now()
            self._wake(index)
        return index

    def of_sequence(self, request: InferRequest) -> int | None:
        """Return the variant at which a request's sequence has begun; None without one."""
        if request.sequence_id:
            for index, slot in enumerate(self.slots):
                if slot.model is not None and slot.model.continues(request):
                    return index
        return None

    def has_other(self, tried: Sequence[int]) -> bool:
        """Return whether `choose` would find a variant, and change nothing."""
        return any(
            self._takes_requests[index] and slot.state is not VariantState.ABSENT
            for index, slot in enumerate(self.slots)
            if index not in tried
        )

    def start_measurement(self, index: int) -> MeasurementStart:
        """Return what a request at a variant is measured from."""
        return self._speeds.start(index, self.clock.now())

    def measure(self, start: MeasurementStart, size: int, tokens: int) -> None:
        """Measure an answered request of so many rows and tokens, while its variant still has it in flight."""
        self._speeds.measure(start, size, tokens, self.clock.now())

    def ended(self, request: InferRequest, size: int, arrived: int, responded: int, response: InferResponse) -> None:
        """Count a request with its last response; the one before came at `responded`, 0 where there was none."""
        self.in_flight -= 1
        count_delegated(self.statistics, request, self.clock.now(), size, arrived, responded, response)
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
        limits, now = self.regimes.limits, self.clock.now()
        age_s = (now - self.regimes.since) / 1e9
        return [
            VariantSeries(
                slot.name,
                slot.in_flight,
                slot.requests,
                slot.moved,
                slot.state.value,
                age_s if index == self.regimes.current else None,
                limits[index] if index < len(limits) else None,
                self._speeds.observed(index, now),
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

"""The dispatcher of one model version: takes requests, asks the scheduler, feeds instances, delivers responses."""

import asyncio
import logging
from collections.abc import Sequence

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ServingError, internal, unavailable
from argosy_runtime.execution.clock import Alarm, Clock
from argosy_runtime.execution.instance import Instance, Run
from argosy_runtime.execution.instance_group import InstanceGroup, NewInstance
from argosy_runtime.execution.warm_up import WarmUp
from argosy_runtime.messages import RESCHEDULED, Deliver, InferRequest, InferResponse
from argosy_runtime.scheduling.limits.rate_limiter import RateLimiter
from argosy_runtime.scheduling.ordering import ResponseOrder
from argosy_runtime.scheduling.queued_request import BatchKey, QueuedRequest, cancellation
from argosy_runtime.scheduling.scheduler import Batch, Scheduler, not_rescheduled
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.telemetry.tracing.executions import trace_answer, trace_execution

from .free_instances import FreeInstances
from .grants import Grants
from .limited_instances import LimitedInstances
from .open_requests import OpenRequests

_log = logging.getLogger("argosy.execution")

# Time that instances have to end where the grace is used up.
_LAST_WORDS_NS = 1_000_000_000


class Dispatcher:
    """Scheduler and instances of one model version. All methods run on the event loop.

    Every request that `submit` accepted gets exactly one final response, and nothing after it. A batch that an
    instance has answered frees the instance, and the next batch goes to it, before the responses are delivered.
    """

    def __init__(
        self,
        name: str,
        version: int,
        scheduler: Scheduler,
        makers: Sequence[NewInstance],
        statistics: ModelStatistics,
        clock: Clock,
        order: ResponseOrder | None = None,
    ) -> None:
        self._name = name
        self._version = str(version)
        self._scheduler = scheduler
        self._order = order
        self._statistics = statistics
        self._clock = clock
        self._group = InstanceGroup(makers, self, clock)
        self._free = FreeInstances(self._group)
        self._alarm = Alarm(clock)
        self._delivering = False
        self._closing = False
        self._traced = False  # a request was: batches are looked through for traces only then
        self._open = OpenRequests(statistics)

    def limit(self, limiter: RateLimiter, placed: LimitedInstances) -> None:
        """Run batches only on instances that the rate limiter has granted."""
        self._free.grants = Grants(limiter, placed, self._wake)

    async def start(self, warm_up: Sequence[Sequence[InferRequest]] = (), warm_up_timeout: float = 600.0) -> None:
        """Load every instance and run the batches of `warm_up` on it. Raises ServingError where that fails.

        Warming one up may take `warm_up_timeout` seconds.
        """
        await self._group.start(WarmUp(warm_up, self._statistics, self._clock, warm_up_timeout))

    @property
    def group(self) -> InstanceGroup:
        """The instances, whose number can change while they serve."""
        return self._group

    def follow(self, order: ResponseOrder | None) -> None:
        """Apply new batching rules to the requests that wait.

        Responses to later requests leave in this order, None for any.
        """
        self._order = order
        self.wake()

    @property
    def ready(self) -> bool:
        """True if at least one instance is loaded or is being restarted."""
        return not self._closing and self._group.lost is None

    @property
    def problem(self) -> str:
        """Reason why the model is not ready, "" if it is."""
        return "" if self._group.lost is None else self._group.lost.message

    @property
    def caution(self) -> str:
        """Reason why the model may soon not be ready, "" without one."""
        return self._group.caution

    @property
    def running(self) -> int:
        """Number of requests at instances, copies for a shadow not among them."""
        return self._open.running

    @property
    def instances(self) -> list[str]:
        """Names of the instances that can take batches, or have one."""
        return self._group.names

    def submit(self, request: InferRequest, size: int, key: BatchKey | None, deliver: Deliver) -> QueuedRequest:
        """Accept a request; `deliver` gets its responses, the last one final. Refusals are delivered too."""
        now = self._clock.now()
        queued = QueuedRequest(request, now, size, key, deliver, self)
        if (self._closing or self._group.lost is not None) and self._refuses(request):
            refusal: ServingError | None = self._unready()
        else:
            refusal = self._scheduler.submit(queued)
        self._open.opened(queued)
        if request.trace is not None:
            self._traced = True
            request.trace.begin(self._name, self._version, request, now)
        if refusal is not None:
            self._fail(queued, refusal)
            return queued
        if self._order is not None and not request.is_shadow:
            queued.deliver = self._order.expect(deliver)
        self._open.entered_queue(queued)
        if request.is_shadow:
            # Copies that come together share a batch, after the requests that come with them.
            self._alarm.set(now, self._wake)
        elif not self._delivering:
            self._advance(now)
        return queued

    def _refuses(self, request: InferRequest) -> bool:
        """Return whether a request is refused before the scheduler sees it, where instances are lost or it closes."""
        return True

    def continues(self, request: InferRequest) -> bool:
        """Return whether a request belongs to a sequence that has begun here."""
        return False

    def wake(self) -> None:
        """Decide again what runs: something has changed that the scheduler or an instance waited for."""
        if not self._delivering:
            self._wake()

    def cancel(self, queued: QueuedRequest) -> None:
        """Remove a request whose client has gone from the queue, or cancel it at its instance."""
        if queued.over or queued.cancelled:
            return
        queued.cancelled = True
        if queued.run is not None:
            queued.run.cancel(queued.index)
        elif self._scheduler.cancel(queued):
            self._open.left_queue([queued])
            self._fail(queued, cancellation(queued.request))

    @property
    def owes(self) -> bool:
        """True while a request of a client waits for its last response, or may follow in a sequence."""
        return self._open.owed > 0

    @property
    def has_open_requests(self) -> bool:
        """True while any request is not over or may follow, copies for a shadow among them."""
        return self.owes or self._open.mirrored > 0

    async def drained(self) -> None:
        """Wait until nothing is owed."""
        while self.owes:
            await asyncio.shield(self._open.draining())

    async def close(self, grace: float) -> None:
        """Answer the accepted requests for at most `grace` seconds, then release the instances.

        Sequences that have begun go on for so long.
        """
        self._closing = True
        end = self._clock.now() + round(grace * 1e9)
        while self.owes and self._clock.now() < end:
            drained = asyncio.shield(self._open.draining())
            timer = self._clock.call_at(end, self._open.stop_draining)
            try:
                await drained
            finally:
                timer.cancel()
        self.refuse_waiting(unavailable(f"model '{self._name}' was unloaded"))
        self._alarm.cancel()
        await self._group.stop(max(end - self._clock.now(), _LAST_WORDS_NS) / 1e9)

    def instance_added(self, number: int) -> None:
        self._free.added(number)
        self._advance(self._clock.now())

    def instance_died(self, number: int) -> None:
        self._statistics.instances_lost += 1
        self.instance_retired(number)

    def instance_retired(self, number: int) -> None:
        """Send no more batches to an instance; its answers still come."""
        self._free.retired(number)

    def instance_leaves(self, number: int) -> bool:
        self.instance_retired(number)
        return True

    def instances_lost(self) -> None:
        """Refuse the waiting requests: no instance will run them."""
        self.refuse_waiting(self._unready())

    def free(self, number: int) -> None:
        """Dispatch the next batch to an instance that can take one."""
        now = self._clock.now()
        self._freed(number, now)
        self._advance(now)

    def _freed(self, number: int, now: int) -> None:
        self._statistics.instance_freed(now)
        self._free.ended(number)

    def answered(
        self, number: int, batch: list[QueuedRequest], responses: list[InferResponse], times: ExecutionTimes
    ) -> None:
        """Deliver the responses of a batch that an instance has answered completely; the instance is free."""
        now = self._clock.now()
        if self._group.on_trial:
            self._group.answered(number, responses)
        for response in responses:
            if response.error is not None:
                self._group.failed(number, response.error)
        self._freed(number, now)
        if self._scheduler.pending:
            self._advance(now)
        self._statistics.answered_together(batch, responses, times, now)
        # Requests that the answers trigger (next steps of ensembles) are dispatched together after the last answer.
        outermost, self._delivering = not self._delivering, True
        for queued, response in zip(batch, responses, strict=True):
            self._finish(queued)
            self._deliver(queued, response)
        if self._traced:
            trace_execution(batch, times, now)
            for queued in batch:
                trace_answer(queued, now)
        if outermost:
            self._delivering = False
            if self._scheduler.pending:
                self._advance(self._clock.now())

    def answered_one(self, number: int, queued: QueuedRequest, response: InferResponse) -> None:
        """Deliver a response to one request of an instance's batch."""
        if self._group.on_trial:
            self._group.answered(number, [response])
        if response.error is not None:
            self._group.failed(number, response.error)
        self.respond(queued, response)

    def respond(self, queued: QueuedRequest, response: InferResponse) -> None:
        """Deliver a response to a request."""
        if queued.over:
            return
        now = self._clock.now()
        if self._statistics.responses is not None:
            self._statistics.response_sent(queued, response, now)
        if response.final:
            self._statistics.answered(queued, response, now)
            self._finish(queued)
        else:
            if not queued.request.is_shadow:
                self._statistics.responded(queued.arrived, queued.responded, now)
            queued.responded = now
        is_final = response.final
        self._deliver(queued, response)
        if self._traced and is_final:
            trace_answer(queued, now)

    def executed(self, batch: list[QueuedRequest], times: ExecutionTimes | None) -> None:
        """Count a batch that has run."""
        now = self._clock.now()
        self._statistics.executed(batch, times, now)
        if self._traced:
            trace_execution(batch, times, now)

    def _unready(self) -> ServingError:
        text = self.problem or "it is being unloaded"
        return unavailable(f"Request for unavailable model: '{self._name}' version {self._version}: {text}")

    def _advance(self, now: int) -> None:
        free, grants = self._free, self._free.grants
        usable = free.numbers if grants is None else grants.usable(free.numbers, self._scheduler.pending)
        decision = self._scheduler.advance(now, usable)
        for batch in decision.batches:
            free.began(batch.instance)
        for batch in decision.batches:
            self._dispatch(batch, now)
        if grants is not None:
            grants.settle(free.numbers, self._scheduler.pending)
        if decision.wake_at is not None:
            self._alarm.set(decision.wake_at, self._wake)
        for refusal in decision.refused:
            self._open.left_queue([refusal.queued])
            self._fail(refusal.queued, refusal.why)

    def _wake(self) -> None:
        self._advance(self._clock.now())

    def _dispatch(self, batch: Batch, now: int) -> None:
        requests = batch.requests
        self._open.left_queue(requests)
        self._statistics.instance_taken(now)
        instance = self._group.instance(batch.instance)
        for index, queued in enumerate(requests):
            queued.started = now
            queued.index = index
            if (queue_trace := queued.request.queue_trace) is not None:
                queue_trace.ns += now - queued.arrived
        try:
            run = self._begin(instance, batch)
        except Exception as error:
            _log.exception("a batch of model '%s' could not be handed over", self._name)
            self._freed(batch.instance, now)
            self._alarm.set(now, self._wake)
            reason = internal(f"Failed to process the request(s) for model '{self._name}', message: {error!r}")
            for queued in requests:
                queued.started = 0  # no instance has it
                self._fail(queued, reason)
            return
        for queued in requests:
            if not queued.over:
                queued.run = run
                if queued.cancelled:
                    run.cancel(queued.index)
                elif queued.paused:
                    run.pause(queued.index)

    def _begin(self, instance: Instance, batch: Batch) -> Run:
        """Hand a batch over to its instance. Raises where it cannot be."""
        listener = _Running(self, batch.instance, batch.requests)
        return instance.run([queued.request for queued in batch.requests], listener)

    def _fail(self, queued: QueuedRequest, error: ServingError) -> None:
        self.respond(queued, InferResponse(error=error))

    def _finish(self, queued: QueuedRequest) -> None:
        queued.over = True
        # The run refers back to this request: without the cycle the tensors are freed with their last reader.
        queued.run = None
        self._open.over(queued)

    def _deliver(self, queued: QueuedRequest, response: InferResponse) -> None:
        response.model_name = self._name
        response.model_version = self._version
        response.id = queued.request.id
        names = queued.request.requested_outputs
        if names:
            response.keep(names)
        if self._traced and queued.request.trace is not None:
            queued.request.trace.responded(response)
        try:
            queued.deliver(response)
        except Exception:
            # The receiver has failed; the other requests of the batch still get their responses.
            _log.exception("a response of model '%s' could not be delivered", self._name)

    def refuse_waiting(self, error: ServingError) -> None:
        """Answer the requests in the queue with an error: no instance will run them."""
        for queued in self._scheduler.drain():
            self._open.left_queue([queued])
            self._fail(queued, error)


class _Running:
    """Listener of one batch, for its dispatcher."""

    __slots__ = ("_batch", "_dispatcher", "_number")

    def __init__(self, dispatcher: Dispatcher, number: int, batch: list[QueuedRequest]) -> None:
        self._dispatcher = dispatcher
        self._number = number
        self._batch = batch

    def answered(self, responses: list[InferResponse], times: ExecutionTimes) -> None:
        self._dispatcher.answered(self._number, self._batch, responses, times)

    def failed(self, error: ServingError) -> None:
        self._dispatcher.group.failed(self._number, error)

    def free(self) -> None:
        self._dispatcher.free(self._number)

    def respond(self, index: int, response: InferResponse) -> None:
        queued = self._batch[index]
        if response is RESCHEDULED:
            response = InferResponse(error=not_rescheduled())
        self._dispatcher.answered_one(self._number, queued, response)

    def done(self, times: ExecutionTimes | None) -> None:
        self._dispatcher.executed(self._batch, times)

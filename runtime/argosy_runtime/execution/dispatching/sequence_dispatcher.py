"""The dispatcher of a model whose scheduler follows its requests: those of a sequence depend on each other."""

from collections.abc import Sequence

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ServingError
from argosy_runtime.execution.clock import Clock
from argosy_runtime.execution.instance import Instance, Run
from argosy_runtime.execution.instance_group import NewInstance
from argosy_runtime.messages import RESCHEDULED, Deliver, InferRequest, InferResponse
from argosy_runtime.scheduling.queued_request import BatchKey, QueuedRequest, cancellation
from argosy_runtime.scheduling.scheduler import Batch, Slots
from argosy_runtime.scheduling.sequences.scheduler import SequenceScheduler
from argosy_runtime.telemetry.statistics import ModelStatistics

from .dispatcher import Dispatcher


class SequenceDispatcher(Dispatcher):
    """A dispatcher that passes responses and ends of requests to its scheduler.

    An instance that is to leave stays as long as the scheduler needs it, and so does the model while it is closed.
    """

    def __init__(
        self,
        name: str,
        version: int,
        scheduler: SequenceScheduler,
        makers: Sequence[NewInstance],
        statistics: ModelStatistics,
        clock: Clock,
    ) -> None:
        super().__init__(name, version, scheduler, makers, statistics, clock)
        self._sequences = scheduler
        self._leaving: set[int] = set()

    def submit(self, request: InferRequest, size: int, key: BatchKey | None, deliver: Deliver) -> QueuedRequest:
        """Accept a request, as other dispatchers do. Raises ServingError for one that no sequence takes."""
        if not ((self._closing or self._group.lost is not None) and self._refuses(request)):
            error = self._sequences.refusal(request, size)
            if error is not None:
                raise error
        return super().submit(request, size, key, deliver)

    def continues(self, request: InferRequest) -> bool:
        return self._sequences.continues(request)

    def _refuses(self, request: InferRequest) -> bool:
        return self._group.lost is not None or not self._sequences.continues(request)

    @property
    def owes(self) -> bool:
        return self._open.owed > 0 or self._sequences.sequences > 0

    def cancel(self, queued: QueuedRequest) -> None:
        super().cancel(queued)
        self.wake()

    def instance_added(self, number: int) -> None:
        self._sequences.instance_added(number)
        super().instance_added(number)

    def instance_retired(self, number: int) -> None:
        super().instance_retired(number)
        self._leaving.discard(number)
        self._sequences.instance_lost(number)
        self._advance(self._clock.now())

    def instance_leaves(self, number: int) -> bool:
        self._sequences.instance_retired(number)
        if self._sequences.may_retire(number):
            return super().instance_leaves(number)
        self._leaving.add(number)
        return False

    def answered(
        self, number: int, batch: list[QueuedRequest], responses: list[InferResponse], times: ExecutionTimes
    ) -> None:
        super().answered(number, batch, responses, times)
        self.wake()

    def respond(self, queued: QueuedRequest, response: InferResponse) -> None:
        super().respond(queued, response)
        if response.final:
            self.wake()

    def completed(self, queued: QueuedRequest, response: InferResponse) -> None:
        """Pass a response of a running request to the scheduler, before it is delivered."""
        if not queued.over:
            self._sequences.completed(queued, response, self._clock.now())

    def reschedule(self, queued: QueuedRequest) -> None:
        """Queue a request again that its model has released for it; answer it where that is refused."""
        if queued.over:
            return
        queued.run = None
        queued.executed = False
        error = cancellation(queued.request) if queued.cancelled else None
        if error is None:
            error = self._sequences.reschedule(queued, self._clock.now())
        if error is not None:
            self._fail(queued, error)
            return
        self._open.entered_queue(queued)
        self.wake()

    def _begin(self, instance: Instance, batch: Batch) -> Run:
        assert batch.slots is not None
        listener = _RunningSlots(self, batch.instance, batch.requests, batch.slots)
        return instance.run(batch.slots.messages, listener)

    def _finish(self, queued: QueuedRequest) -> None:
        super()._finish(queued)
        self._sequences.request_over(queued, self._clock.now())

    def _advance(self, now: int) -> None:
        super()._advance(now)
        for number in [number for number in self._leaving if self._sequences.may_retire(number)]:
            self._leaving.discard(number)
            super().instance_retired(number)
            self._group.unbind(number)
        if not self.owes:
            self._open.stop_draining()


class _RunningSlots:
    """Listener of one batch by position.

    The instance counts as free at the end of `done`: the next batch needs all responses of this one.
    """

    __slots__ = ("_batch", "_dispatcher", "_number", "_slots")

    def __init__(self, dispatcher: SequenceDispatcher, number: int, batch: list[QueuedRequest], slots: Slots) -> None:
        self._dispatcher = dispatcher
        self._number = number
        self._batch = batch
        self._slots = slots
        for position, queued in enumerate(slots.requests):
            if queued is not None:
                queued.index = position

    def answered(self, responses: list[InferResponse], times: ExecutionTimes) -> None:
        own: list[InferResponse] = []
        for queued, response in zip(self._slots.requests, responses, strict=True):
            if queued is not None:
                own.append(response)
                self._dispatcher.completed(queued, response)
            elif response.error is not None:
                self.failed(response.error)
        self._dispatcher.answered(self._number, self._batch, own, times)

    def failed(self, error: ServingError) -> None:
        self._dispatcher.group.failed(self._number, error)

    def free(self) -> None:
        """Do nothing: `done` follows."""

    def respond(self, index: int, response: InferResponse) -> None:
        queued = self._slots.requests[index]
        if queued is None:
            return
        if response is RESCHEDULED:
            self._dispatcher.reschedule(queued)
        else:
            self._dispatcher.completed(queued, response)
            self._dispatcher.answered_one(self._number, queued, response)

    def done(self, times: ExecutionTimes | None) -> None:
        self._dispatcher.executed(self._batch, times)
        self._dispatcher.free(self._number)

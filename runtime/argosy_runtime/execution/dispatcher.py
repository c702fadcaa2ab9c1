"""One per model version: takes requests, asks the scheduler, feeds the instances, delivers the answers, counts."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic_ns, time_ns
from typing import Protocol

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, unavailable
from argosy_runtime.messages import Deliver, InferRequest, InferResponse
from argosy_runtime.scheduling.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.ordering import ResponseOrder
from argosy_runtime.scheduling.queue import timeout_error
from argosy_runtime.scheduling.queued_request import BatchKey, QueuedRequest
from argosy_runtime.telemetry.statistics import ModelStatistics

from .instance import Instance, Run
from .instance_group import InstanceGroup, NewInstance

# How long instances may take to end where the grace is used up.
_LAST_WORDS_SECONDS = 1.0


@dataclass(eq=False)
class DispatchedRequest(QueuedRequest):
    """A queued request with whom to tell, and where it runs once it does."""

    deliver: Deliver = lambda response: None
    started: int = 0
    run: Run | None = None
    index: int = 0
    over: bool = False
    executed: bool = False
    succeeded: bool = False
    dispatcher: "Dispatcher | None" = None

    def cancel(self) -> None:
        """See `Submission`."""
        if self.dispatcher is not None:
            self.dispatcher.cancel(self)

    def pause(self) -> None:
        """See `Submission`."""
        if self.run is not None:
            self.run.pause(self.index)

    def resume(self) -> None:
        """See `Submission`."""
        if self.run is not None:
            self.run.resume(self.index)


class Identity(Protocol):
    """Whose responses these are."""

    @property
    def name(self) -> str:
        """The model."""

    @property
    def version(self) -> int:
        """The version served."""


class Dispatcher:
    """Queue, scheduler and instances of one model version. All methods run on the event loop."""

    def __init__(
        self,
        identity: Identity,
        rules: BatchingRules,
        makers: Sequence[NewInstance],
        statistics: ModelStatistics,
    ) -> None:
        self._name = identity.name
        self._version = str(identity.version)
        self._scheduler: DynamicBatcher[DispatchedRequest] = DynamicBatcher(rules)
        self._order: ResponseOrder[DispatchedRequest, InferResponse] | None = None
        if rules.preserve_ordering:
            self._order = ResponseOrder()
        self._group = InstanceGroup(makers, self._on_return, self._on_end)
        self._statistics = statistics
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._owed: set[DispatchedRequest] = set()
        self._drained = asyncio.Event()

    async def start(self) -> None:
        """Load every instance; raises ServingError where one cannot."""
        await self._group.start()

    async def warm_up(self, batches: Sequence[Sequence[InferRequest]]) -> None:
        """Run every batch on every instance, before any request comes; the first error is raised."""
        for instance in list(self._group.idle):
            for batch in batches:
                await self._warm_up_once(instance, batch)

    async def _warm_up_once(self, instance: Instance, batch: Sequence[InferRequest]) -> None:
        now = monotonic_ns()
        errors: asyncio.Queue[ServingError | None] = asyncio.Queue()

        def deliver(response: InferResponse) -> None:
            if response.final:
                errors.put_nowait(response.error)

        jobs = [DispatchedRequest(request, now, deliver=deliver, started=now) for request in batch]
        self._group.idle.remove(instance)
        if self._order is not None:
            for job in jobs:
                self._order.expect(job)
        free = asyncio.Event()
        instance.run(batch, _Batch(self, instance, jobs, on_done=free.set))
        for _ in jobs:
            error = await errors.get()
            if error is not None:
                raise error
        await free.wait()

    @property
    def ready(self) -> bool:
        """Whether it can answer: at least one instance lives or is on its way back."""
        return not self._closing and self._group.lost is None

    @property
    def problem(self) -> str:
        """Why it is not ready, "" where it is."""
        return "" if self._group.lost is None else self._group.lost.message

    @property
    def still_loading(self) -> bool:
        """Whether an instance whose load was given up loads all the same."""
        return self._group.still_loading

    def submit(self, request: InferRequest, size: int, key: BatchKey | None, deliver: Deliver) -> DispatchedRequest:
        """A request comes in; `deliver` gets its responses, the last one final. Refusals are delivered too."""
        now = monotonic_ns()
        job = DispatchedRequest(request, now, size, key, deliver=deliver, dispatcher=self)
        self._owed.add(job)
        refusal = self._unready() if not self.ready else self._scheduler.submit(job)
        if refusal is not None:
            self._answer(job, InferResponse("", "", error=refusal))
            return job
        if self._order is not None:
            self._order.expect(job)
        self._statistics.pending += 1
        self._advance(now)
        return job

    def cancel(self, job: DispatchedRequest) -> None:
        """The client has gone: forget the request, or tell the instance that runs it."""
        if job.over or job.cancelled:
            return
        job.cancelled = True
        if job.run is not None:
            job.run.cancel(job.index)
        elif self._scheduler.cancel(job):
            self._statistics.pending -= 1
            self.receive(job, InferResponse("", "", error=_cancelled(job)))

    async def close(self, grace: float) -> None:
        """Answer what has been accepted, for at most `grace` seconds, then release the instances."""
        self._closing = True
        end = self._loop.time() + grace
        if self._owed:
            self._drained.clear()
            try:
                await asyncio.wait_for(self._drained.wait(), grace)
            except TimeoutError:
                self._refuse_waiting(unavailable(f"model '{self._name}' was unloaded"))
        if self._timer is not None:
            self._timer.cancel()
        await self._group.stop(max(end - self._loop.time(), _LAST_WORDS_SECONDS))

    def _unready(self) -> ServingError:
        text = self.problem or "it is being unloaded"
        return unavailable(f"Request for unavailable model: '{self._name}' version {self._version}: {text}")

    def _advance(self, now: int) -> None:
        step = self._scheduler.advance(now, len(self._group.idle))
        for job in step.expired:
            self._statistics.pending -= 1
            self.receive(job, InferResponse("", "", error=timeout_error(job)))
        for batch in step.batches:
            self._dispatch(batch, now)
        self._set_timer(step.wake_at, now)

    def _set_timer(self, wake_at: int | None, now: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wake_at is not None:
            self._timer = self._loop.call_later(max(0, wake_at - now) / 1e9, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._advance(monotonic_ns())

    def _dispatch(self, batch: list[DispatchedRequest], now: int) -> None:
        instance = self._group.take()
        self._statistics.pending -= len(batch)
        listener = _Batch(self, instance, batch)
        for index, job in enumerate(batch):
            job.started, job.index = now, index
        run = instance.run([job.request for job in batch], listener)
        for job in batch:
            job.run = run

    def free(self, instance: Instance) -> None:
        """An instance can take another batch: it gets one before the answers to its last one go out."""
        self._group.give_back(instance)
        self._advance(monotonic_ns())

    def executed(self, batch: list[DispatchedRequest], times: ExecutionTimes | None) -> None:
        """An instance is through with a batch."""
        now = monotonic_ns()
        for job in batch:
            job.executed = True
        answered = sum(job.succeeded for job in batch)
        spent = times or ExecutionTimes(0, now - batch[0].started, 0)
        self._statistics.executed(answered, sum(job.size for job in batch), spent)

    def receive(self, job: DispatchedRequest, response: InferResponse) -> None:
        """A request has an answer: from an instance, or because it will not get to one."""
        if self._order is None:
            self._answer(job, response)
            return
        for owner, released in self._order.receive(job, response, response.final):
            self._answer(owner, released)

    def _answer(self, job: DispatchedRequest, response: InferResponse) -> None:
        if job.over:
            return
        response.model_name = self._name
        response.model_version = self._version
        response.id = job.request.id
        _keep_requested(response, job.request.requested_outputs)
        if response.final:
            self._finish(job, response)
        job.deliver(response)

    def _finish(self, job: DispatchedRequest, response: InferResponse) -> None:
        job.over = True
        self._owed.discard(job)
        if not self._owed:
            self._drained.set()
        total = monotonic_ns() - job.arrived
        failure = _failure(response.error) or (FailureReason.CANCELED if job.cancelled else None)
        if failure is not None:
            self._statistics.failed(total, failure)
        else:
            job.succeeded = True
            self._statistics.succeeded(total, job.started - job.arrived, job.size, time_ns() // 1_000_000)
            if job.executed:
                # Its execution ended before it did, so the batch could not be charged with it.
                self._statistics.charge(1, ExecutionTimes(0, monotonic_ns() - job.started, 0))

    def _on_return(self) -> None:
        self._advance(monotonic_ns())

    def _on_end(self) -> None:
        self._refuse_waiting(self._unready())

    def _refuse_waiting(self, error: ServingError) -> None:
        for job in self._scheduler.drain():
            self._statistics.pending -= 1
            self.receive(job, InferResponse("", "", error=error))


@dataclass(slots=True)
class _Batch:
    """Listens to one batch."""

    dispatcher: Dispatcher
    instance: Instance
    jobs: list[DispatchedRequest]
    on_done: Callable[[], None] | None = None

    def answered(self, responses: list[InferResponse], times: ExecutionTimes) -> None:
        """See `RunListener`."""
        self.free()
        for job, response in zip(self.jobs, responses, strict=True):
            self.dispatcher.receive(job, response)
        self.done(times)

    def free(self) -> None:
        """See `RunListener`."""
        self.dispatcher.free(self.instance)

    def respond(self, index: int, response: InferResponse) -> None:
        """See `RunListener`."""
        self.dispatcher.receive(self.jobs[index], response)

    def done(self, times: ExecutionTimes | None) -> None:
        """See `RunListener`."""
        self.dispatcher.executed(self.jobs, times)
        if self.on_done is not None:
            self.on_done()


def _keep_requested(response: InferResponse, names: tuple[str, ...]) -> None:
    """Only the outputs that were asked for, in the order in which they were."""
    if not names or (response.plan is not None and response.plan.names == names):
        return
    if outputs := response.outputs:
        by_name = {tensor.name: tensor for tensor in outputs}
        response.outputs = [by_name[name] for name in names if name in by_name]


def _cancelled(job: DispatchedRequest) -> ServingError:
    return ServingError(ErrorKind.CANCELLED, f"{job.request.log_prefix}Request was cancelled", FailureReason.CANCELED)


def _failure(error: ServingError | None) -> FailureReason | None:
    """Which failure a response tells of: none where it has no error, or one that the model answered with."""
    if error is None or error.reason is None:
        return None
    if error.kind is ErrorKind.CANCELLED:
        return FailureReason.CANCELED
    return error.reason

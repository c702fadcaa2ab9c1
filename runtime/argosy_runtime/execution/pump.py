"""One per model version: takes requests, asks the scheduler, feeds the instances, and brings lost instances back."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic_ns, time_ns
from typing import Protocol

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, unavailable
from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.scheduling.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.ordering import ResponseOrder
from argosy_runtime.scheduling.queue import timeout_error
from argosy_runtime.scheduling.ticket import BatchKey, Ticket
from argosy_runtime.telemetry.statistics import ModelStatistics

from .instance import Instance, Run

_log = logging.getLogger("argosy.execution")

Deliver = Callable[[InferResponse], None]
NewInstance = Callable[[Callable[[Instance, ServingError], None]], Instance]

_FIRST_RETRY_SECONDS = 0.2
_LAST_RETRY_SECONDS = 30.0


@dataclass(slots=True, eq=False)
class Job(Ticket):
    """A ticket with whom to tell, and where it runs once it does."""

    deliver: Deliver = lambda response: None
    started: int = 0
    instance: Instance | None = None
    run: Run | None = None
    index: int = 0
    over: bool = False
    succeeded: bool = False


_UNTIMED = ExecutionTimes(0, 0, 0)


class Identity(Protocol):
    """Whose responses these are."""

    @property
    def name(self) -> str:
        """The model."""

    @property
    def version(self) -> int:
        """The version served."""


class Pump:
    """Queue, scheduler and instances of one model version. All methods run on the event loop."""

    def __init__(
        self,
        identity: Identity,
        rules: BatchingRules,
        makers: Sequence[NewInstance],
        statistics: ModelStatistics,
        decoupled: bool = False,
    ) -> None:
        self._decoupled = decoupled
        self._name = identity.name
        self._version = str(identity.version)
        self._scheduler: DynamicBatcher[Job] = DynamicBatcher(rules)
        self._order: ResponseOrder[InferResponse] | None = ResponseOrder() if rules.preserve_ordering else None
        self._ordered: dict[object, Job] = {}
        self._makers = list(makers)
        self._statistics = statistics
        self._loop = asyncio.get_running_loop()
        self._instances: dict[Instance, NewInstance] = {}
        self._idle: list[Instance] = []
        self._timer: asyncio.TimerHandle | None = None
        self._revivals: set[asyncio.Task[None]] = set()
        self._lost: ServingError | None = None
        self._closing = False
        self._owed: set[Job] = set()
        self._drained = asyncio.Event()

    async def start(self) -> None:
        """Load every instance, all at once; the first failure ends those that loaded and is raised."""
        instances = [(make(self._on_death), make) for make in self._makers]
        results = await asyncio.gather(*(i.start() for i, _ in instances), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures:
            started = [i for (i, _), result in zip(instances, results, strict=True) if result is None]
            await asyncio.gather(*(instance.stop() for instance in started))
            raise failures[0]
        self._instances = dict(instances)
        self._idle = [instance for instance, _ in instances]

    async def warm_up(self, batches: Sequence[Sequence[InferRequest]]) -> None:
        """Run every batch on every instance, before any request comes; the first error is raised."""
        for instance in list(self._idle):
            for batch in batches:
                await self._warm_up_once(instance, batch)

    async def _warm_up_once(self, instance: Instance, batch: Sequence[InferRequest]) -> None:
        now = monotonic_ns()
        errors: asyncio.Queue[ServingError | None] = asyncio.Queue()

        def deliver(response: InferResponse) -> None:
            if response.final:
                errors.put_nowait(response.error)

        jobs = [Job(request, now, deliver=deliver, started=now) for request in batch]
        self._idle.remove(instance)
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
        return not self._closing and self._lost is None

    @property
    def problem(self) -> str:
        """Why it is not ready, "" where it is."""
        return "" if self._lost is None else self._lost.message

    def submit(self, request: InferRequest, size: int, key: BatchKey | None, deliver: Deliver) -> Job:
        """A request comes in; `deliver` gets its responses, the last one final. Refusals are delivered too."""
        now = monotonic_ns()
        job = Job(request, now, size, key, deliver=deliver)
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

    def cancel(self, job: Job) -> None:
        """The client has gone: forget the request, or tell the instance that runs it."""
        if job.over or job.cancelled:
            return
        job.cancelled = True
        if job.instance is not None and job.run is not None:
            job.instance.cancel(job.run, job.index)
        elif self._scheduler.cancel(job):
            self._statistics.pending -= 1
            self._receive(job, InferResponse("", "", error=_cancelled(job)))

    async def close(self, grace: float) -> None:
        """Answer what has been accepted, for at most `grace` seconds, then release the instances."""
        self._closing = True
        if self._owed:
            self._drained.clear()
            try:
                await asyncio.wait_for(self._drained.wait(), grace)
            except TimeoutError:
                self._refuse_waiting(unavailable(f"model '{self._name}' was unloaded"))
        for task in self._revivals:
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*(instance.stop() for instance in self._instances))

    def _unready(self) -> ServingError:
        text = self.problem or "it is being unloaded"
        return unavailable(f"Request for unavailable model: '{self._name}' version {self._version}: {text}")

    def _advance(self, now: int) -> None:
        step = self._scheduler.advance(now, len(self._idle))
        for job in step.expired:
            self._statistics.pending -= 1
            self._receive(job, InferResponse("", "", error=timeout_error(job)))
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

    def _dispatch(self, batch: list[Job], now: int) -> None:
        instance = self._idle.pop(0)
        self._statistics.pending -= len(batch)
        listener = _Batch(self, instance, batch)
        for index, job in enumerate(batch):
            job.started, job.instance, job.index = now, instance, index
        run = instance.run([job.request for job in batch], listener)
        for job in batch:
            job.run = run

    def executed(self, instance: Instance, batch: list[Job], times: ExecutionTimes | None) -> None:
        """An instance is through with a batch."""
        if instance in self._instances:
            self._idle.append(instance)
        answered = sum(job.succeeded for job in batch)
        self._statistics.executed(answered, sum(job.size for job in batch), times or _UNTIMED)
        self._advance(monotonic_ns())

    def receive(self, job: Job, response: InferResponse) -> None:
        """An instance answered a request."""
        self._receive(job, response)

    def _receive(self, job: Job, response: InferResponse) -> None:
        if self._order is None:
            self._answer(job, response)
            return
        for key, released in self._order.receive(job, response, response.final):
            assert isinstance(key, Job)
            self._answer(key, released)

    def _answer(self, job: Job, response: InferResponse) -> None:
        if job.over:
            return
        response.model_name = self._name
        response.model_version = self._version
        response.id = job.request.id
        if response.final:
            self._finish(job, response)
        job.deliver(response)

    def _finish(self, job: Job, response: InferResponse) -> None:
        job.over = True
        self._owed.discard(job)
        if not self._owed:
            self._drained.set()
        total = monotonic_ns() - job.arrived
        if response.error is not None:
            self._statistics.failed(total, _reason(response.error))
        elif job.cancelled:
            self._statistics.failed(total, FailureReason.CANCELED)
        else:
            job.succeeded = True
            self._statistics.succeeded(total, job.started - job.arrived, job.size, time_ns() // 1_000_000)
            if self._decoupled:
                self._statistics.compute_infer.add(monotonic_ns() - job.started)

    def _on_death(self, instance: Instance, error: ServingError) -> None:
        make = self._instances.pop(instance)
        if instance in self._idle:
            self._idle.remove(instance)
        _log.error("%s", error.message)
        if not self._closing:
            task = self._loop.create_task(self._revive(make))
            self._revivals.add(task)
            task.add_done_callback(self._revivals.discard)

    async def _revive(self, make: NewInstance) -> None:
        delay = _FIRST_RETRY_SECONDS
        while True:
            await asyncio.sleep(delay)
            instance = make(self._on_death)
            try:
                await instance.start()
            except ServingError as error:
                delay = min(2 * delay, _LAST_RETRY_SECONDS)
                _log.error("%s; trying again in %g s", error.message, delay)
                self._give_up_if_alone(error)
                continue
            self._instances[instance] = make
            self._idle.append(instance)
            self._lost = None
            self._advance(monotonic_ns())
            return

    def _give_up_if_alone(self, error: ServingError) -> None:
        if not self._instances:
            self._lost = error
            self._refuse_waiting(self._unready())

    def _refuse_waiting(self, error: ServingError) -> None:
        for job in self._scheduler.drain():
            self._statistics.pending -= 1
            self._receive(job, InferResponse("", "", error=error))


@dataclass(slots=True)
class _Batch:
    """Listens to one batch."""

    pump: Pump
    instance: Instance
    jobs: list[Job]
    on_done: Callable[[], None] | None = None

    def respond(self, index: int, response: InferResponse) -> None:
        """See `RunListener`."""
        self.pump.receive(self.jobs[index], response)

    def done(self, times: ExecutionTimes | None) -> None:
        """See `RunListener`."""
        self.pump.executed(self.instance, self.jobs, times)
        if self.on_done is not None:
            self.on_done()


def _cancelled(job: Job) -> ServingError:
    return ServingError(ErrorKind.CANCELLED, f"{job.request.log_prefix}Request was cancelled", FailureReason.CANCELED)


def _reason(error: ServingError) -> FailureReason:
    if error.kind is ErrorKind.CANCELLED:
        return FailureReason.CANCELED
    return error.reason

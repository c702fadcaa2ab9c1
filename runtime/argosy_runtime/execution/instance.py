"""An instance for the event loop: it takes one batch at a time and reports to a listener."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import count
from typing import Final, Protocol

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.backends.engines.commands import CheckReadiness, Command, not_taken
from argosy_runtime.errors import ServingError, internal
from argosy_runtime.messages import InferRequest, InferResponse, QueueTrace
from argosy_runtime.modelconfig import InstancePlacement

_NOT_MIRRORED: Final[list[QueueTrace]] = []
_NONE: Final[frozenset[int]] = frozenset()
# How long a model may take to say whether it is ready, as in Triton.
_READINESS_SECONDS: Final = 5.0


class RunListener(Protocol):
    """Listener to one batch. Called on the event loop only.

    Either `answered` alone, or `free` and `done` once each, in this order, with responses before, between and
    (where a model answers later) after them. Errors that come with the end of the execution are passed to `failed`
    before `free`.
    """

    def answered(self, responses: list[InferResponse], times: ExecutionTimes) -> None:
        """Take the final responses to all requests of the batch, in order; the instance is free."""

    def failed(self, error: ServingError) -> None:
        """Note an error of the execution or of a response, which follows. After a device error no batch may follow."""

    def free(self) -> None:
        """Note that the instance can take another batch; answers to this one may follow."""

    def respond(self, index: int, response: InferResponse) -> None:
        """Take a response to request `index`; nothing follows its final one."""

    def done(self, times: ExecutionTimes | None) -> None:
        """Note that the execution has ended. Without times the model may go on responding."""


class GroupListener(Protocol):
    """Listener to a group's instances, each with a number of its own."""

    def instance_added(self, number: int) -> None:
        """Note that an instance is loaded and warm."""

    def instance_died(self, number: int) -> None:
        """Note that an instance has ended."""

    def instance_retired(self, number: int) -> None:
        """Note that an instance takes no more batches; it finishes what it runs."""

    def instance_leaves(self, number: int) -> bool:
        """Note that an instance is to leave. Return whether it takes no more batches; else it does until `unbind`."""

    def instances_lost(self) -> None:
        """Note that no instance is left, and that a restart has failed or is not worth an attempt now."""


class NoListener:
    """Listener of a group that has stopped."""

    def instance_added(self, number: int) -> None:
        """Ignore an instance."""

    def instance_died(self, number: int) -> None:
        """Ignore an end that was reported before."""

    def instance_retired(self, number: int) -> None:
        """Ignore an instance."""

    def instance_leaves(self, number: int) -> bool:
        """Ignore an instance."""
        return True

    def instances_lost(self) -> None:
        """Ignore the loss."""


NO_LISTENER: Final = NoListener()


class Run:
    """One batch at an instance, and its requests without a last response, out of `count`.

    `mirrored`: the traces of those that are copies for a shadow, which share no batch with others. `cancelled` are
    those whose answers nothing waits for.
    """

    __slots__ = ("_open", "busy", "cancelled", "count", "freed", "id", "instance", "listener", "mirrored")

    def __init__(
        self, run_id: int, instance: "Instance", listener: RunListener, count: int, mirrored: list[QueueTrace]
    ) -> None:
        self.id = run_id
        self.instance = instance
        self.listener = listener
        self.count = count
        self.mirrored = mirrored
        self.cancelled = _NONE
        self.busy = True
        self.freed = False
        self._open: set[int] | None = None

    @property
    def open(self) -> set[int]:
        """Requests without a last response, by their index in the batch."""
        if self._open is None:
            self._open = set(range(self.count))
        return self._open

    def free(self) -> None:
        """Notify the listener, once, that the instance can take another batch."""
        if not self.freed:
            self.freed = True
            self.listener.free()

    @property
    def is_withdrawn(self) -> bool:
        """Whether nothing waits for an answer to any of its requests."""
        return bool(self.cancelled) and self.open <= self.cancelled

    def cancel(self, index: int) -> None:
        self.cancelled |= {index}
        self.instance.cancel(self, index)

    def pause(self, index: int) -> None:
        self.instance.pause(self, index)

    def resume(self, index: int) -> None:
        self.instance.resume(self, index)


class Instance(ABC):
    """The runs of one loaded instance of a model.

    Subclasses load it (`start`), hand over batches (`_execute`), pass cancellations on and release it (`stop`).
    `on_death` is called once when a started instance is lost. Of free instances batches go to those of the lowest
    `rank`. An error of an instance `on_cpu` is never a GPU's.
    """

    def __init__(self, name: str, rank: int = 0, on_cpu: bool = False) -> None:
        self.name = name
        self.rank = rank
        self.on_cpu = on_cpu
        self.pid = 0
        """Its process; 0 where it has none of its own."""
        self._runs: dict[int, Run] = {}
        self._ids = count()
        self._mirrored: list[QueueTrace] = []
        self._loss: ServingError | None = None
        self._idle: asyncio.Future[None] | None = None
        # Where it is, as its configuration says; None of an instance that no configuration names.
        self.placement: InstancePlacement | None = None
        # Whether batches go to it though it is to leave.
        self.bound = False
        self.checks_readiness = False
        """Whether the model says itself whether it is ready."""
        self._check: asyncio.Task[str] | None = None

    @abstractmethod
    async def start(self) -> None:
        """Load the model. Raises ServingError."""

    @abstractmethod
    async def stop(self, grace: float) -> None:
        """Release the model within `grace` seconds; requests still open then are answered with an error."""

    @abstractmethod
    def give_up(self, words: str) -> None:
        """End the instance for a device error, described in `words`; further calls have no effect."""

    @abstractmethod
    def _execute(self, run: Run, requests: Sequence[InferRequest]) -> None:
        """Hand a batch over; its results come by `_respond` and `_done`."""

    @abstractmethod
    def cancel(self, run: Run, index: int) -> None:
        """Cancel one request, whose client has gone, and calls for copies that nothing waits for any more."""

    @abstractmethod
    def pause(self, run: Run, index: int) -> None:
        """Pause one request, whose client reads slowly: no response to it until `resume`."""

    @abstractmethod
    def resume(self, run: Run, index: int) -> None:
        """Resume one request."""

    async def manage(self, command: Command) -> None:
        """Have the model carry out a command. Raises ServingError: UNSUPPORTED where it does not know the command."""
        raise not_taken(f"model instance '{self.name}'", command)

    async def readiness(self) -> str:
        """Have the model say whether it is ready. Return why it is not, "" if it is.

        One check runs at a time; callers share it.
        """
        if self._check is None or self._check.done():
            self._check = asyncio.get_running_loop().create_task(self._checked())
        try:
            return await asyncio.wait_for(asyncio.shield(self._check), _READINESS_SECONDS)
        except TimeoutError:
            return f"model instance '{self.name}': is_ready takes longer than {_READINESS_SECONDS:g} s"

    async def _checked(self) -> str:
        try:
            await self.manage(CheckReadiness())
        except ServingError as error:
            return error.message
        return ""

    def idle(self) -> "asyncio.Future[None]":
        """Return a future that is done once all requests are answered, of an instance without further batches.

        While the instance is `bound` further ones come, until `unbind`.
        """
        self._idle = asyncio.get_running_loop().create_future()
        self._note_idle()
        return self._idle

    def mirrored(self) -> Sequence[QueueTrace]:
        """Return the traces of the copies for a shadow that the model works on, or did last; none if it works on
        requests of clients, too.
        """
        traces = self._mirrored
        if len(self._runs) < 2:
            return traces
        together: list[QueueTrace] = []
        for run in self._runs.values():
            if not run.mirrored:
                return _NOT_MIRRORED
            together += run.mirrored
        return together

    def is_withdrawn(self) -> bool:
        """Return whether the model works on copies for a shadow alone that are all cancelled."""
        return bool(self._runs) and all(run.mirrored and run.is_withdrawn for run in self._runs.values())

    def open_runs(self) -> tuple[int, ...]:
        """Return the numbers of the batches that the model works on."""
        return tuple(self._runs)

    def withdrawn_runs(self) -> set[int]:
        """Return the numbers of the batches whose requests are all cancelled."""
        return {number for number, run in self._runs.items() if run.is_withdrawn}

    def unbind(self) -> None:
        """Note that no further batch comes."""
        self.bound = False
        self._note_idle()

    def _note_idle(self) -> None:
        if self._idle is not None and not self._runs and not self.bound and not self._idle.done():
            self._idle.set_result(None)

    def run(self, requests: Sequence[InferRequest], listener: RunListener) -> Run:
        """Start a batch. After the instance was lost, the batch is answered with the reason."""
        mirrored = _NOT_MIRRORED if not requests[0].is_shadow else _traces(requests)
        run = Run(next(self._ids), self, listener, len(requests), mirrored)
        self._mirrored = mirrored
        self._runs[run.id] = run
        if self._loss is not None:
            self._fail_all(self._loss)
            return run
        try:
            self._execute(run, requests)
        except BaseException:
            del self._runs[run.id]
            raise
        return run

    def _answered(self, run_id: int, responses: list[InferResponse], times: ExecutionTimes) -> None:
        """Take the responses to all of a batch at once, the common case: as many final ones as requests."""
        run = self._runs.get(run_id)
        if run is None:
            return
        if run.freed or run._open is not None or len(responses) != run.count:
            self._done(run_id, times, None, list(enumerate(responses)))
            return
        del self._runs[run_id]
        run.busy, run.freed = False, True
        run.listener.answered(responses, times)
        if self._idle is not None:
            self._note_idle()

    def _respond(self, run_id: int, index: int, response: InferResponse) -> None:
        run = self._runs.get(run_id)
        if run is None or index not in run.open:
            return
        if response.final:
            run.open.discard(index)
        run.listener.respond(index, response)
        self._forget_if_over(run)

    def _done(
        self,
        run_id: int,
        times: ExecutionTimes | None,
        error: ServingError | None,
        responses: Sequence[tuple[int, InferResponse]] = (),
    ) -> None:
        """End the execution with its last responses, by request, and the error of the requests without one.

        The next batch goes to the instance before these are delivered, unless there is a device error among them.
        """
        run = self._runs.get(run_id)
        if run is None:
            return
        for reason in (*[response.error for _, response in responses], error):
            if reason is not None:
                run.listener.failed(reason)
        run.free()
        for index, response in responses:
            self._respond(run_id, index, response)
        if error is None and times is not None and run.open:
            error = internal(f"model instance '{self.name}' did not answer every request of its batch")
        if error is not None:
            self._fail(run, error)
        run.busy = False
        run.listener.done(times)
        self._forget_if_over(run)

    def _fail(self, run: Run, error: ServingError) -> None:
        for index in sorted(run.open):
            run.listener.respond(index, InferResponse("", "", error=error))
        run.open.clear()

    def _fail_all(self, error: ServingError) -> None:
        """Answer all open requests with an error: the instance is gone."""
        self._loss = error
        for run in list(self._runs.values()):
            run.free()
            self._fail(run, error)
            if run.busy:
                run.busy = False
                run.listener.done(None)
        self._runs.clear()
        self._note_idle()

    def _forget_if_over(self, run: Run) -> None:
        if not run.open and not run.busy:
            self._runs.pop(run.id, None)
            self._note_idle()


def _traces(requests: Sequence[InferRequest]) -> list[QueueTrace]:
    return [request.queue_trace for request in requests if request.queue_trace is not None]

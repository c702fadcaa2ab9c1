"""An instance as the event loop sees it: it takes one batch at a time and reports through a listener."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.errors import ServingError, internal
from argosy_runtime.messages import InferRequest, InferResponse


class RunListener(Protocol):
    """Who hears of one batch. Called on the event loop only."""

    def respond(self, index: int, response: InferResponse) -> None:
        """A response to request `index`; nothing follows its final one."""

    def done(self, times: ExecutionTimes | None) -> None:
        """The instance is free. Decoupled models may go on responding."""


@dataclass(slots=True, eq=False)
class Run:
    """One batch given to an instance."""

    id: int
    listener: RunListener
    open: set[int] = field(default_factory=set)
    busy: bool = True


class Instance(ABC):
    """Keeps the runs of one loaded copy of a model, whatever it runs on.

    Subclasses load it (`start`), hand over batches (`_execute`), pass cancellations on and release it (`stop`).
    `on_death` is called once when an instance that had started is lost.
    """

    def __init__(self, name: str, decoupled: bool) -> None:
        self.name = name
        self._decoupled = decoupled
        self._runs: dict[int, Run] = {}
        self._ids = count()

    @abstractmethod
    async def start(self) -> None:
        """Load the model. Raises ServingError where it cannot."""

    @abstractmethod
    async def stop(self, grace: float) -> None:
        """Release the model, within `grace` seconds; what it still owes then is answered with an error."""

    @abstractmethod
    def _execute(self, run: Run, requests: Sequence[InferRequest]) -> None:
        """Hand a batch over; what comes of it is told by `_respond` and `_done`."""

    @abstractmethod
    def cancel(self, run: Run, index: int) -> None:
        """The client of one request has gone."""

    @abstractmethod
    def pause(self, run: Run, index: int) -> None:
        """The client of one request reads slower than it is answered: no response to it until `resume`."""

    @abstractmethod
    def resume(self, run: Run, index: int) -> None:
        """It has caught up."""

    def run(self, requests: Sequence[InferRequest], listener: RunListener) -> Run:
        """Start a batch."""
        run = Run(next(self._ids), listener, set(range(len(requests))))
        self._runs[run.id] = run
        self._execute(run, requests)
        return run

    def _respond(self, run_id: int, index: int, response: InferResponse) -> None:
        run = self._runs.get(run_id)
        if run is None or index not in run.open:
            return
        if response.final:
            run.open.discard(index)
        run.listener.respond(index, response)
        self._forget_if_over(run)

    def _done(self, run_id: int, times: ExecutionTimes | None, error: ServingError | None) -> None:
        run = self._runs.get(run_id)
        if run is None:
            return
        if error is None and run.open and not self._decoupled:
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
        """The instance is gone: everything it owed is answered with the error."""
        for run in list(self._runs.values()):
            self._fail(run, error)
            if run.busy:
                run.busy = False
                run.listener.done(None)
        self._runs.clear()

    def _forget_if_over(self, run: Run) -> None:
        if not run.open and not run.busy:
            self._runs.pop(run.id, None)

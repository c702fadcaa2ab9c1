"""Calls of running models to their server (business logic scripting): the server's end of one instance's calls."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final, Protocol

from argosy_runtime.backends.contract import ServerCall
from argosy_runtime.errors import ServingError, internal, unavailable
from argosy_runtime.messages import SHADOW_PRIORITY, Deliver, InferRequest, InferResponse, QueueTrace, Submission

# Calls of one instance that may be open at a time.
MOST_OPEN: Final = 4096

Value = bool | float | None

_NO_RUNS: Final[set[int]] = set()

_owners: Final = count(1)


class ServerCalls(Protocol):
    """The data plane's services for models."""

    def infer(self, request: InferRequest, decoupled: bool, deliver: Deliver) -> Submission:
        """Run another model. Raises ServingError where that is refused."""

    async def do(self, what: ServerCall, owner: int) -> Value:
        """Do any other call, for one instance. Raises ServingError."""

    def forget(self, owner: int) -> None:
        """Remove an instance that has ended, with everything of its own."""


class Answers(Protocol):
    """Receiver of answers for the model. Called on the event loop."""

    def respond(self, call: int, response: InferResponse) -> None:
        """Take a response to an inference; nothing follows its final one."""

    def reply(self, call: int, value: Value, error: ServingError | None) -> None:
        """Take the result of any other call, or the refusal of an inference."""

    def mirrored(self) -> Sequence[QueueTrace]:
        """Return the traces of the copies for a shadow that the model works on; none if it has requests of clients."""

    def is_withdrawn(self) -> bool:
        """Return whether the model works on copies for a shadow alone that are all cancelled."""

    def open_runs(self) -> tuple[int, ...]:
        """Return the numbers of the batches that the model works on."""

    def withdrawn_runs(self) -> set[int]:
        """Return the numbers of the batches whose requests are all cancelled."""


class _Discard:
    """Receiver of answers to calls of a model that has ended."""

    def respond(self, call: int, response: InferResponse) -> None:
        """Drop the response."""

    def reply(self, call: int, value: Value, error: ServingError | None) -> None:
        """Drop the result."""

    def mirrored(self) -> Sequence[QueueTrace]:
        """Return none: its calls are over."""
        return ()

    def is_withdrawn(self) -> bool:
        """Return False: its calls are over."""
        return False

    def open_runs(self) -> tuple[int, ...]:
        """Return none: it has ended."""
        return ()

    def withdrawn_runs(self) -> set[int]:
        """Return none: it has ended."""
        return _NO_RUNS


_DISCARD: Final = _Discard()


class OpenCalls:
    """The open calls of one instance, by number. On the event loop only."""

    def __init__(self, calls: ServerCalls, answers: Answers) -> None:
        self._calls = calls
        self._answers: Answers = answers
        self._owner = next(_owners)
        self._inferences: dict[int, _Inference] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._blocked = False

    def infer(self, call: int, request: InferRequest, decoupled: bool) -> None:
        """Start an inference."""
        if len(self._inferences) >= MOST_OPEN:
            refusal = unavailable(f"more than {MOST_OPEN} calls of one model instance are open")
            self._answers.reply(call, None, refusal)
            return
        inference = self._inferences[call] = _Inference(call, self._deliver, self._answers.open_runs())
        inference.blocked = self._blocked
        try:
            if mirrored := self._answers.mirrored():
                _make_copy(request, mirrored)
                inference.is_copy = True
            submission = self._calls.infer(request, decoupled, inference.deliver)
            if call in self._inferences:
                inference.begin(submission)
                if inference.is_copy and self._answers.is_withdrawn():
                    submission.cancel()
        except Exception as error:
            self._inferences.pop(call, None)
            self._answers.reply(call, None, _refusal(error))

    def do(self, call: int, what: ServerCall, answered: bool = True) -> None:
        """Start any other call."""
        if self._answers is _DISCARD:
            return
        task = asyncio.get_running_loop().create_task(self._do(call, what, answered))
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    def cancel(self, call: int) -> None:
        """Cancel an inference that the model no longer waits for."""
        if (submission := self._submission(call)) is not None:
            submission.cancel()

    def withdraw(self) -> None:
        """Cancel the inferences that nothing waits for: those that began while the model worked on requests which are
        all cancelled by now.

        The requests of others that they wait behind may keep the model for long. It goes on with their errors, and
        its later calls run, but not those for copies.
        """
        withdrawn = self._answers.withdrawn_runs() if self._inferences else _NO_RUNS
        if not withdrawn:
            return
        for call, inference in list(self._inferences.items()):
            if inference.runs and withdrawn.issuperset(inference.runs):
                self.cancel(call)

    def pause(self, call: int) -> None:
        """Pause an inference whose responses come faster than the model takes them."""
        if (inference := self._inferences.get(call)) is not None:
            inference.wait(slow=True, blocked=inference.blocked)

    def resume(self, call: int) -> None:
        """Resume a paused inference."""
        if (inference := self._inferences.get(call)) is not None:
            inference.wait(slow=False, blocked=inference.blocked)

    def pause_all(self) -> None:
        """Pause all inferences, open and future ones: nothing can be written to the model for now."""
        self._block(True)

    def resume_all(self) -> None:
        """Resume all inferences but those that the model has paused itself."""
        self._block(False)

    def _block(self, blocked: bool) -> None:
        self._blocked = blocked
        for inference in list(self._inferences.values()):
            inference.wait(inference.slow, blocked)

    def close(self) -> None:
        """Cancel all calls: the model has ended."""
        for call in list(self._inferences):
            self.cancel(call)
        self._inferences.clear()
        for task in self._others:
            task.cancel()
        self._calls.forget(self._owner)
        self._answers = _DISCARD  # the receiver refers back to this object

    def _submission(self, call: int) -> Submission | None:
        inference = self._inferences.get(call)
        return None if inference is None else inference.submission

    def _deliver(self, call: int, response: InferResponse) -> None:
        if call not in self._inferences:
            return
        if response.final:
            # The submission refers back to this: without the cycle its tensors need no garbage collector.
            self._inferences.pop(call).submission = None
        self._answers.respond(call, response)

    async def _do(self, call: int, what: ServerCall, answered: bool) -> None:
        value, refusal = None, None
        try:
            value = await self._calls.do(what, self._owner)
        except Exception as error:
            refusal = _refusal(error)
        if answered:
            self._answers.reply(call, value, refusal)


def _make_copy(request: InferRequest, callers: Sequence[QueueTrace]) -> None:
    """Make a request one for a shadow: of the lowest priority, and neither traffic nor an arrival of its model.

    Each of its `callers` calls; the time that it waits is the first one's.
    """
    for caller in callers:
        caller.calls = True
    request.queue_trace = callers[0]
    request.inputs = request.inputs  # Without its template, whose requests have the priority of others.
    request.priority = SHADOW_PRIORITY


def _refusal(error: Exception) -> ServingError:
    return error if isinstance(error, ServingError) else internal(f"{type(error).__name__}: {error}")


class _Inference:
    """One open inference. It is paused while its model is `slow`, or the connection to the model is `blocked`.

    `is_copy`: it is part of the answers to copies for a shadow. `runs`: the batches that its model worked on as it
    began.
    """

    __slots__ = ("_call", "_deliver", "blocked", "is_copy", "runs", "slow", "submission")

    def __init__(self, call: int, deliver: Callable[[int, InferResponse], None], runs: tuple[int, ...]) -> None:
        self._call = call
        self._deliver = deliver
        self.runs = runs
        self.submission: Submission | None = None
        self.is_copy = False
        self.slow = False
        self.blocked = False

    def begin(self, submission: Submission) -> None:
        """Note that the request was submitted; it may have to pause already."""
        self.submission = submission
        if self.slow or self.blocked:
            submission.pause()

    def wait(self, slow: bool, blocked: bool) -> None:
        """Set the reasons to pause, and resume without one."""
        before = self.slow or self.blocked
        self.slow, self.blocked = slow, blocked
        if self.submission is not None and before != (slow or blocked):
            if before:
                self.submission.resume()
            else:
                self.submission.pause()

    def deliver(self, response: InferResponse) -> None:
        self._deliver(self._call, response)

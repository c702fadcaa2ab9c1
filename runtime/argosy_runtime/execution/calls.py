"""What running models ask of the server (business logic scripting): the server's end of one instance's calls."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

from argosy_runtime.backends.contract import ServerCall
from argosy_runtime.errors import ServingError, internal, unavailable
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission

# So many calls of one instance may be open at a time.
MOST_OPEN: Final = 4096

Value = bool | float | None

_owners: Final = count(1)


class ServerCalls(Protocol):
    """What the data plane does for models."""

    def infer(self, request: InferRequest, decoupled: bool, deliver: Deliver) -> Submission:
        """Run another model. Raises ServingError where it may not be asked."""

    async def do(self, what: ServerCall, owner: int) -> Value:
        """Anything else, for one instance. Raises ServingError."""

    def forget(self, owner: int) -> None:
        """An instance is gone, with all that is its own."""


class Answers(Protocol):
    """How answers find back to the model. Called on the event loop."""

    def respond(self, call: int, response: InferResponse) -> None:
        """A response to an inference; nothing follows its final one."""

    def reply(self, call: int, value: Value, error: ServingError | None) -> None:
        """What came of any other call, or why an inference was refused."""


class _Nobody:
    """Takes the answers to calls of a model that is gone."""

    def respond(self, call: int, response: InferResponse) -> None:
        """See `Answers`."""

    def reply(self, call: int, value: Value, error: ServingError | None) -> None:
        """See `Answers`."""


_NOBODY: Final = _Nobody()


class OpenCalls:
    """The calls of one instance that are not over, by number. On the event loop only."""

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
        inference = self._inferences[call] = _Inference(call, self._deliver)
        inference.blocked = self._blocked
        try:
            submission = self._calls.infer(request, decoupled, inference.deliver)
            if call in self._inferences:
                inference.begin(submission)
        except Exception as error:
            self._inferences.pop(call, None)
            self._answers.reply(call, None, _refusal(error))

    def do(self, call: int, what: ServerCall, answered: bool = True) -> None:
        """Start anything else."""
        if self._answers is _NOBODY:
            return
        task = asyncio.get_running_loop().create_task(self._do(call, what, answered))
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    def cancel(self, call: int) -> None:
        """The model wants no more of an inference."""
        if (submission := self._submission(call)) is not None:
            submission.cancel()

    def pause(self, call: int) -> None:
        """The model takes responses slower than they come."""
        if (inference := self._inferences.get(call)) is not None:
            inference.wait(slow=True, blocked=inference.blocked)

    def resume(self, call: int) -> None:
        """It has caught up."""
        if (inference := self._inferences.get(call)) is not None:
            inference.wait(slow=False, blocked=inference.blocked)

    def pause_all(self) -> None:
        """Nothing more can be passed on for now, neither of these calls nor of those that come."""
        self._block(True)

    def resume_all(self) -> None:
        """It can again. What its model has paused stays so."""
        self._block(False)

    def _block(self, blocked: bool) -> None:
        self._blocked = blocked
        for inference in list(self._inferences.values()):
            inference.wait(inference.slow, blocked)

    def close(self) -> None:
        """The model is gone: nobody waits for its answers."""
        for call in list(self._inferences):
            self.cancel(call)
        self._inferences.clear()
        for task in self._others:
            task.cancel()
        self._calls.forget(self._owner)
        self._answers = _NOBODY  # whoever was answered leads back here

    def _submission(self, call: int) -> Submission | None:
        inference = self._inferences.get(call)
        return None if inference is None else inference.submission

    def _deliver(self, call: int, response: InferResponse) -> None:
        if call not in self._inferences:
            return
        if response.final:
            # The submission knows who is answered: without this its tensors would wait for the collector.
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


def _refusal(error: Exception) -> ServingError:
    return error if isinstance(error, ServingError) else internal(f"{type(error).__name__}: {error}")


class _Inference:
    """One inference on its way. It waits while its model is `slow`, or the way to the model is `blocked`."""

    __slots__ = ("_call", "_deliver", "blocked", "slow", "submission")

    def __init__(self, call: int, deliver: Callable[[int, InferResponse], None]) -> None:
        self._call = call
        self._deliver = deliver
        self.submission: Submission | None = None
        self.slow = False
        self.blocked = False

    def begin(self, submission: Submission) -> None:
        """It is on its way; it may have to wait already."""
        self.submission = submission
        if self.slow or self.blocked:
            submission.pause()

    def wait(self, slow: bool, blocked: bool) -> None:
        """Wait for these reasons, and go on without one."""
        before = self.slow or self.blocked
        self.slow, self.blocked = slow, blocked
        if self.submission is not None and before != (slow or blocked):
            if before:
                self.submission.resume()
            else:
                self.submission.pause()

    def deliver(self, response: InferResponse) -> None:
        self._deliver(self._call, response)

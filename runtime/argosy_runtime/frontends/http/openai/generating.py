"""A generation on its way: requests to a model, their responses written as one answer or as a stream of events.

It works by callbacks: a token needs no task, no future and no timer.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.http.wire.reply import JSON_HEADERS, Reply
from argosy_runtime.frontends.http.wire.request_context import RequestContext
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.language import Delta
from argosy_runtime.messages import InferRequest, InferResponse, Submission
from argosy_runtime.protocol.openai.errors import ApiError, ParameterNames, from_serving
from argosy_runtime.protocol.openai.responses.events import error_event
from argosy_runtime.protocol.openai.responses.reader import Reader

from .origin import BodyOrigin
from .replies import EVENT_HEADERS, REQUEST_ID, error_reply, interruption


class Answer(Protocol):
    """A whole answer, put together from deltas."""

    def take(self, prompt: int, delta: Delta) -> None:
        """Take a delta of the prompt with this number. Raises ApiError."""

    def body(self) -> bytes:
        """Return the answer as JSON."""


class Events(Protocol):
    """An answer as events."""

    def take(self, prompt: int, delta: Delta) -> bytes:
        """Return the events of a delta of the prompt with this number, maybe none. Raises ApiError."""

    def end(self) -> bytes:
        """Return the last events."""


Names = Callable[[], ParameterNames]
Output = TypeVar("Output")
EventsT = TypeVar("EventsT", bound=Events)


class Generation(Generic[Output]):
    """The requests behind one answer, a reader for the responses to each. It is the work of `context`.

    `names` returns what the request calls the parameters that models name in their errors. `output` makes the answer.
    """

    def __init__(
        self,
        plane: DataPlane,
        context: RequestContext,
        request_id: str,
        readers: Sequence[Reader],
        names: Names,
        output: Output,
    ) -> None:
        self._plane = plane
        self._context = context
        self._id = request_id
        self._readers = readers
        self._names = names
        self._output = output
        self._submissions: list[Submission] = []
        self._unanswered = len(readers)
        self._over = False

    def start(self, requests: Sequence[InferRequest], body: Struct) -> None:
        """Submit the requests of a `body`, one for each reader. An error is answered at once."""
        self._context.interrupted = self._interrupted
        origin = BodyOrigin(self._context.head, body)
        for request in requests:
            request.origin = origin
            request.received = self._context.received
        try:
            if len(requests) > 1:
                self._plane.pin(requests)
            for prompt, request in enumerate(requests):
                if self._over:
                    break
                self._submissions.append(self._plane.submit(request, partial(self._deliver, prompt)))
        except ServingError as error:
            self._fail(from_serving(error, self._names()))
            return
        except Exception:
            self.cancel()
            raise
        if self._over:
            self._cancel_all()
        elif not self._context.answered:
            self._context.work = self
            self._context.paces(self)

    def cancel(self) -> None:
        """Cancel all requests: the client has gone, or the server ends."""
        if not self._over:
            self._over = True
            self._cancel_all()

    def pause(self) -> None:
        """Have the models wait: the client reads too slowly."""
        for submission in self._submissions:
            submission.pause()

    def resume(self) -> None:
        """Let the models go on."""
        for submission in self._submissions:
            submission.resume()

    def _cancel_all(self) -> None:
        for submission in self._submissions:
            submission.cancel()

    def _deliver(self, prompt: int, response: InferResponse) -> None:
        if self._over:
            return
        try:
            if response.error is not None:
                raise from_serving(response.error, self._names())
            self._take(prompt, self._readers[prompt].read(response))
            if response.final:
                self._unanswered -= 1
                if not self._unanswered:
                    self._over = True
                    self._end()
        except ApiError as error:
            self._fail(error)
        except ServingError as error:
            self._fail(from_serving(error, self._names()))
        except Exception as error:
            self.cancel()
            self._context.fail(error)

    def _fail(self, error: ApiError) -> None:
        """Answer with an error, and give up all requests."""
        self._over = True
        self._answer_error(error)
        self._cancel_all()

    def _interrupted(self, status: int, message: str) -> None:
        self._over = True
        self._answer_error(interruption(status, message))

    def _answer_error(self, error: ApiError) -> None:
        reply = error_reply(error)
        reply.headers = (*reply.headers, (REQUEST_ID, self._id))
        self._context.reply(reply)

    def _take(self, prompt: int, deltas: Sequence[Delta]) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError


class UnaryGeneration(Generation[Answer]):
    """A generation that is answered once it is complete."""

    def _take(self, prompt: int, deltas: Sequence[Delta]) -> None:
        for delta in deltas:
            self._output.take(prompt, delta)

    def _end(self) -> None:
        headers = (*JSON_HEADERS, (REQUEST_ID, self._id))
        self._context.reply(Reply(200, (self._output.body(),), headers))


class StreamedGeneration(Generation[EventsT]):
    """A generation whose pieces are sent as they come. The status is that of the first response."""

    def _take(self, prompt: int, deltas: Sequence[Delta]) -> None:
        take = self._output.take
        data = take(prompt, deltas[0]) if len(deltas) == 1 else b"".join([take(prompt, delta) for delta in deltas])
        if data:
            self._send(data)

    def _end(self) -> None:
        self._send(self._output.end())
        self._context.end()

    def _send(self, data: bytes) -> None:
        if not self._context.started:
            self._context.start(200, (*EVENT_HEADERS, (REQUEST_ID, self._id)))
        self._context.push(data)

    def _answer_error(self, error: ApiError) -> None:
        if not self._context.started:
            super()._answer_error(error)
        elif not self._context.answered:
            self._context.push(error_event(error))
            self._context.end()

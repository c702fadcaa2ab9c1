"""`InferenceResponse`: what `execute` gives back, and what a called model answered."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from argosy_runtime import messages
from argosy_runtime.backends.contract import Answer, Call
from argosy_runtime.errors import ServingError

from . import arguments, tensor
from .errors import TritonError, TritonModelException, from_serving_error, to_serving_error
from .reaper import reaper

RETAINED_BYTES: Final = 4 << 20
"""So much of a decoupled call's responses is kept, so that they can be iterated over again."""


class InferenceResponse:
    """One response: output tensors, or an error."""

    def __init__(
        self,
        output_tensors: Sequence[tensor.Tensor] = (),
        error: TritonError | None = None,
        parameters: Mapping[str, messages.Parameter] | None = None,
    ) -> None:
        self._outputs = arguments.elements("output_tensors", output_tensors)
        for output in self._outputs:
            if not isinstance(output, tensor.Tensor):
                _refuse_output(output)
        if error is not None and not isinstance(error, TritonError):
            raise TypeError(f"error must be TritonError, not {type(error).__name__}")
        self._error = error
        self._parameters = checked_parameters(parameters)

    def output_tensors(self) -> list[tensor.Tensor]:
        """Return the outputs, in the order given."""
        return self._outputs

    def has_error(self) -> bool:
        """Return whether this is an error."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """Return the error, if any."""
        return self._error

    def parameters(self) -> str:
        """Return the response's parameters as JSON."""
        return json.dumps(self._parameters)

    def to_message(
        self,
        request: messages.InferRequest,
        version: str,
        requested: frozenset[str],
        final: bool,
        later: bool = False,
    ) -> messages.InferResponse:
        """Return the server's message, with the outputs in `requested` only (all if `requested` is empty).

        `later`: the message is sent after the model has continued.
        """
        if self._error is not None:
            error = to_serving_error(self._error)
            return messages.InferResponse(request.model_name, version, request.id, error=error, final=final)
        outputs = [
            tensor.to_message(output, later) for output in self._outputs if not requested or output.name() in requested
        ]
        parameters = dict(self._parameters) if self._parameters else None
        return messages.InferResponse(request.model_name, version, request.id, outputs, parameters, None, final)


def _refuse_output(output: Any) -> NoReturn:
    if output is None:
        raise TritonModelException("Output tensor for inference response should not be empty.")
    raise TypeError(f"an element of output_tensors must be Tensor, not {type(output).__name__}")


def checked_parameters(parameters: Mapping[str, Any] | None) -> dict[str, messages.Parameter]:
    """Return parameters that a response or request can carry. Raises TritonModelException for other types."""
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        raise TritonModelException(f"Expect parameters to be a dict, found type {type(parameters)}")
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException(f"Expect parameters keys to have type str, found type {type(key)}")
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(f"Expect parameters values to have type bool/int/str, found type {type(value)}")
    return dict(parameters)


def from_message(response: messages.InferResponse) -> InferenceResponse:
    """Return a called model's response, as a model sees it."""
    return InferenceResponse(
        [tensor.from_message(output) for output in response.outputs],
        from_serving_error(response.error) if response.error else None,
        response.parameters,
    )


def refused(model: str, error: ServingError) -> InferenceResponse:
    """Return the response of a call that the server refuses."""
    message = f"Model {model} - Error when running inference: {error.message}"
    return InferenceResponse(error=TritonError(message, from_serving_error(error).code()))


class RefusedCall:
    """A call that its own server refused before it began: an iterator that raises the reason."""

    def __init__(self, reason: ServingError) -> None:
        self._reason = reason

    def __iter__(self) -> "RefusedCall":
        return self

    def __next__(self) -> Answer:
        raise self._reason

    def cancel(self) -> None:
        """Do nothing: the call has ended."""

    def when_ready(self, notify: Callable[[], None]) -> None:
        """Call `notify` at once."""
        notify()


def next_response(call: Call, model: str) -> tuple[InferenceResponse | None, bool]:
    """Return the next answer of a called model, None where there is none, and whether it is the last. Waits for it."""
    try:
        answer = next(call, None)
    except ServingError as error:
        return refused(model, error), True
    if not isinstance(answer, messages.InferResponse):
        return None, True
    return from_message(answer), answer.final


class ResponseIterator:
    """The responses of a decoupled model, in order, as they come: `for`, or `async for` in a coroutine.

    The last one may have no outputs: it only says that none follows. Iterating again starts over once the end was
    reached, where all of them are no more than `RETAINED_BYTES`: more are not retained. An iterator that is dropped
    before its end cancels the request.
    """

    def __init__(self, call: Call, model: str) -> None:
        self._call = call
        self._model = model
        self._seen: list[InferenceResponse] = []
        self._bytes = 0
        self._next = 0
        self._finished = False

    def __iter__(self) -> "ResponseIterator":
        if self._finished and self._next >= len(self._seen):
            if self._bytes > RETAINED_BYTES:
                raise TritonModelException(
                    f"Responses of more than {RETAINED_BYTES} bytes are not kept: they can be iterated over only once."
                )
            self._next = 0
        return self

    def __next__(self) -> InferenceResponse:
        response = self._following()
        if response is None:
            raise StopIteration
        return response

    def __aiter__(self) -> "ResponseIterator":
        return iter(self)

    async def __anext__(self) -> InferenceResponse:
        if self._next >= len(self._seen) and not self._finished:
            await answered(self._call)
        response = self._following()
        if response is None:
            raise StopAsyncIteration
        return response

    def cancel(self) -> None:
        """Cancel the request, as if the client had gone; what comes of it are the last responses."""
        if not self._finished:
            self._call.cancel()

    def __del__(self) -> None:
        if not self._finished:
            reaper.put(self._call.cancel)

    def _following(self) -> InferenceResponse | None:
        """Return the next response, seen before or fetched now; None at the end."""
        if self._next < len(self._seen):
            self._next += 1
            return self._seen[self._next - 1]
        if self._finished:
            return None
        response, self._finished = next_response(self._call, self._model)
        if response is not None:
            self._keep(response)
        return response

    def _keep(self, response: InferenceResponse) -> None:
        self._bytes += sum([output.nbytes() for output in response.output_tensors()])
        if self._bytes > RETAINED_BYTES:
            self._seen.clear()
            self._next = 0
            return
        self._seen.append(response)
        self._next = len(self._seen)


async def answered(call: Call) -> None:
    """Wait until `next` of a call would not wait. Cancelling this cancels the call."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def note() -> None:
        if not ready.done():
            ready.set_result(None)

    call.when_ready(lambda: soon(loop, note))
    try:
        await ready
    except asyncio.CancelledError:
        call.cancel()
        raise


def soon(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """Run this on a loop, from any thread; do nothing where the loop is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(what)


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> tensor.Tensor | None:
    """Return the response's output of that name, None where it has none."""
    for candidate in inference_response.output_tensors():
        if candidate.name() == name:
            return candidate
    return None

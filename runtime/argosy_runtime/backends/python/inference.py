"""`InferenceRequest` and `InferenceResponse`: what `execute` is given and gives back, and how a model calls
another.
"""

import asyncio
import contextvars
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from argosy_runtime import messages
from argosy_runtime.errors import ServingError

from . import context, tensor
from .errors import TritonError, TritonModelException, from_serving_error, to_serving_error
from .sender import InferenceResponseSender

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2


class MemoryType(IntEnum):
    """Where a model would like the outputs of another model to be."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1


@dataclass(frozen=True, slots=True)
class PreferredMemory:
    """A wish about the outputs of a called model. Outputs are always handed over in host memory."""

    preferred_memory_type: MemoryType
    preferred_device_id: int = 0


class InferenceTrace:
    """The trace a request belongs to."""

    def __init__(self, trace_context: str | None = None) -> None:
        self._context = trace_context

    def get_context(self) -> str | None:
        """The propagated OpenTelemetry context as JSON, None without one."""
        return self._context


class InferenceResponse:
    """One response: output tensors, or an error."""

    def __init__(
        self,
        output_tensors: Sequence[tensor.Tensor] = (),
        error: TritonError | None = None,
        parameters: Mapping[str, messages.Parameter] | None = None,
    ) -> None:
        if any(output is None for output in output_tensors):
            raise TritonModelException("Output tensor for inference response should not be empty.")
        self._outputs = list(output_tensors)
        self._error = error
        self._parameters = checked_parameters(parameters)

    def output_tensors(self) -> list[tensor.Tensor]:
        """The outputs, in the order given."""
        return self._outputs

    def has_error(self) -> bool:
        """Whether this is an error."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """The error, if any."""
        return self._error

    def parameters(self) -> str:
        """The response's parameters as JSON."""
        return json.dumps(self._parameters)

    def to_message(
        self, request: messages.InferRequest, version: str, wanted: frozenset[str], final: bool
    ) -> messages.InferResponse:
        """The server's form, with the outputs in `wanted` only (all where `wanted` is empty)."""
        response = messages.InferResponse(request.model_name, version, request.id, final=final)
        if self._error is not None:
            response.error = to_serving_error(self._error)
            return response
        response.outputs = [
            tensor.to_message(output) for output in self._outputs if not wanted or output.name() in wanted
        ]
        response.parameters = dict(self._parameters)
        return response


def checked_parameters(parameters: Mapping[str, Any] | None) -> dict[str, messages.Parameter]:
    """Parameters a response or request can carry. Raises TritonModelException for other types."""
    for key, value in (parameters or {}).items():
        if not isinstance(key, str):
            raise TritonModelException(f"Expect parameters keys to have type str, found type {type(key)}")
        if not isinstance(value, (bool, int, str, float)):
            raise TritonModelException(f"Expect parameters values to have type bool/int/str, found type {type(value)}")
    return dict(parameters or {})


class InferenceRequest:
    """A request: one the server hands to `execute`, or one a model makes of another model."""

    def __init__(
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs: Sequence[tensor.Tensor] = (),
        requested_output_names: Sequence[str] = (),
        model_name: str = "",
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory | None = None,
        trace: InferenceTrace | None = None,
        parameters: Mapping[str, messages.Parameter] | None = None,
    ) -> None:
        _check_request(request_id, model_name, inputs, requested_output_names)
        if not isinstance(correlation_id, (int, str)):
            raise TritonModelException("Correlation ID must be integer or string")
        self._id = request_id
        self._correlation_id = correlation_id
        self._inputs = list(inputs)
        self._requested = list(requested_output_names)
        self._model_name = model_name
        self._model_version = model_version
        self._flags = flags
        self._timeout = timeout
        self.preferred_memory = preferred_memory
        self._trace = trace or InferenceTrace()
        self._parameters = checked_parameters(parameters)
        self._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        self._sender: InferenceResponseSender | None = None
        self._is_cancelled: Callable[[], bool] | None = None

    @classmethod
    def received(
        cls, request: messages.InferRequest, outputs: Sequence[str], sender: InferenceResponseSender
    ) -> "InferenceRequest":
        """What `execute` sees of a request; `outputs` are the names it asks for."""
        start = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START if request.sequence_start else 0
        end = TRITONSERVER_REQUEST_FLAG_SEQUENCE_END if request.sequence_end else 0
        self = cls(
            request_id=request.id,
            correlation_id=request.sequence_id,
            inputs=[tensor.from_message(given) for given in request.inputs.values()],
            requested_output_names=outputs,
            model_name=request.model_name,
            flags=start | end,
            timeout=request.timeout_us,
            parameters=request.parameters,
        )
        self._sender = sender
        self._is_cancelled = sender.is_cancelled
        return self

    def inputs(self) -> list[tensor.Tensor]:
        """The input tensors."""
        return self._inputs

    def request_id(self) -> str:
        """The client's id, "" without one."""
        return self._id

    def correlation_id(self) -> int | str:
        """The sequence the request belongs to, 0 for none."""
        return self._correlation_id

    def flags(self) -> int:
        """TRITONSERVER_REQUEST_FLAG_* bits."""
        return self._flags

    def set_flags(self, flags: int) -> None:
        """Replace the flags."""
        self._flags = flags

    def timeout(self) -> int:
        """Microseconds the request may wait in the queue, 0 for the model's default."""
        return self._timeout

    def parameters(self) -> str:
        """The request's parameters as JSON."""
        return json.dumps(self._parameters)

    def trace(self) -> InferenceTrace:
        """The trace this request belongs to; hand it on to follow calls between models."""
        return self._trace

    def requested_output_names(self) -> list[str]:
        """The outputs to compute, in order."""
        return self._requested

    def get_response_sender(self) -> InferenceResponseSender:
        """Where to send responses, now or later.

        Raises TritonModelException for a request the model made itself.
        """
        if self._sender is None:
            raise TritonModelException("Only a request given to 'execute' has a response sender.")
        return self._sender

    def is_cancelled(self) -> bool:
        """Whether the client no longer waits."""
        return self._is_cancelled is not None and self._is_cancelled()

    def set_release_flags(self, flags: int) -> None:
        """TRITONSERVER_REQUEST_RELEASE_RESCHEDULE puts the request back into the queue when `execute`
        returns.
        """
        self._release_flags = flags

    @property
    def is_rescheduled(self) -> bool:
        """Whether the model asked for this request to come again."""
        return self._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE

    def exec(self, decoupled: bool = False) -> "InferenceResponse | ResponseIterator":
        """Run the named model and wait. With `decoupled`, an iterator over its responses."""
        running = context.current()
        if not running.serving:
            raise TritonModelException("BLS is only supported during the 'execute' function.")
        try:
            answers: Iterable[messages.InferResponse] = running.host.infer(self._outgoing(), decoupled)
        except ServingError as error:
            told = f"Model {self._model_name} - Error when running inference: {error.message}"
            failed = InferenceResponse(error=TritonError(told, from_serving_error(error).code()))
            return ResponseIterator([failed]) if decoupled else failed
        if decoupled:
            return ResponseIterator(from_message(answer) for answer in answers)
        return next((from_message(answer) for answer in answers if not answer.is_empty), InferenceResponse())

    def async_exec(self, decoupled: bool = False) -> "asyncio.Future[InferenceResponse | ResponseIterator]":
        """`exec` in a thread of the running loop's executor, to be awaited."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(None, contextvars.copy_context().run, self.exec, decoupled)

    def _outgoing(self) -> messages.InferRequest:
        return messages.InferRequest(
            model_name=self._model_name,
            inputs={given.name(): tensor.to_message(given) for given in self._inputs},
            model_version="" if self._model_version < 0 else str(self._model_version),
            id=self._id,
            requested_outputs=tuple(self._requested),
            parameters=dict(self._parameters),
            sequence_id=self._correlation_id,
            sequence_start=bool(self._flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START),
            sequence_end=bool(self._flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END),
            timeout_us=self._timeout,
        )


def _check_request(request_id: str, model_name: str, inputs: Sequence[tensor.Tensor], outputs: Sequence[str]) -> None:
    where = f"for request with id '{request_id}' and model name '{model_name}' should not be empty."
    if any(given is None for given in inputs):
        raise TritonModelException(f"Input tensor {where}")
    if any(name == "" for name in outputs):
        raise TritonModelException(f"Requested output name {where}")


class ResponseIterator:
    """The responses of a decoupled model, in order. Iterating again starts over once the end was reached."""

    def __init__(self, responses: Iterable[InferenceResponse]) -> None:
        self._source: Iterator[InferenceResponse] = iter(responses)
        self._seen: list[InferenceResponse] = []
        self._next = 0
        self._finished = False

    def __iter__(self) -> "ResponseIterator":
        if self._finished and self._next >= len(self._seen):
            self._next = 0
        return self

    def __next__(self) -> InferenceResponse:
        if self._next >= len(self._seen):
            self._fetch()
        self._next += 1
        return self._seen[self._next - 1]

    def cancel(self) -> None:
        """Take no further responses."""
        self._source = iter(())

    def _fetch(self) -> None:
        try:
            self._seen.append(next(self._source))
        except StopIteration:
            self._finished = True
            raise


def from_message(response: messages.InferResponse) -> InferenceResponse:
    """What another model answered, as a model sees it."""
    return InferenceResponse(
        [tensor.from_message(output) for output in response.outputs],
        from_serving_error(response.error) if response.error else None,
        response.parameters,
    )

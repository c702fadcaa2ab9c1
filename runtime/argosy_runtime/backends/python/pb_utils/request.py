"""`InferenceRequest`: what `execute` is given, and how a model calls another."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy_runtime import messages
from argosy_runtime.backends.contract import Call, Infer, Responder
from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.traces import Trace

from . import arguments, context, tensor
from .errors import Constant, TritonModelException
from .reaper import reaper
from .response import (
    InferenceResponse,
    RefusedCall,
    ResponseIterator,
    checked_parameters,
    next_response,
    soon,
)
from .sender import InferenceResponseSender, ResponseChannel

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2

_UINT32, _INT64, _UINT64 = 2**32 - 1, 2**63 - 1, 2**64 - 1


class MemoryType(Constant):
    """Where a model would like the outputs of another model to be."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1


@dataclass(frozen=True)
class PreferredMemory:
    """A wish about the outputs of a called model. Outputs are always handed over in host memory."""

    preferred_memory_type: MemoryType
    preferred_device_id: int = 0


class InferenceTrace:
    """The trace a request belongs to."""

    def __init__(self, trace: Trace | None = None) -> None:
        self.trace = trace

    def get_context(self) -> str | None:
        """Return the OpenTelemetry context of the model's span as JSON, None without one."""
        return None if self.trace is None else self.trace.context or None


class InferenceRequest:
    """A request: one the server hands to `execute`, or one a model makes of another model.

    A model gives inputs, requested outputs and the name of the model to call.
    """

    def __init__(
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs: Sequence[tensor.Tensor] | None = None,
        requested_output_names: Sequence[str] | None = None,
        model_name: str | None = None,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory | None = None,
        trace: InferenceTrace | None = None,
        parameters: Mapping[str, messages.Parameter] | None = None,
    ) -> None:
        self._id = arguments.text("request_id", request_id)
        self._correlation_id = _correlation_id(correlation_id)
        self._inputs = arguments.elements("inputs", inputs)
        self._requested = arguments.texts("requested_output_names", requested_output_names)
        self._model_name = arguments.text("model_name", model_name)
        _check_request(self._id, self._model_name, self._inputs, self._requested)
        self._model_version = arguments.integer("model_version", model_version, -_INT64 - 1, _INT64)
        self._flags = arguments.integer("flags", flags, 0, _UINT32)
        self._timeout = arguments.integer("timeout", timeout, 0, _UINT64)
        self.preferred_memory = preferred_memory
        self._trace = trace or InferenceTrace()
        self._parameters = checked_parameters(parameters)
        self._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        self._made_by = context.current()

    def inputs(self) -> list[tensor.Tensor]:
        """Return the input tensors."""
        return self._inputs

    def request_id(self) -> str:
        """Return the client's id, "" without one."""
        return self._id

    def correlation_id(self) -> int | str:
        """Return the sequence the request belongs to, 0 for none."""
        return self._correlation_id

    def flags(self) -> int:
        """Return the TRITONSERVER_REQUEST_FLAG_* bits."""
        return self._flags

    def set_flags(self, flags: int) -> None:
        """Replace the flags."""
        self._flags = arguments.integer("flags", flags, 0, _UINT32)

    def timeout(self) -> int:
        """Return the microseconds that the request may wait in the queue, 0 for the model's default."""
        return self._timeout

    def parameters(self) -> str:
        """Return the request's parameters as JSON."""
        return json.dumps(self._parameters)

    def trace(self) -> InferenceTrace:
        """Return the trace this request belongs to; hand it on to follow calls between models."""
        return self._trace

    def requested_output_names(self) -> set[str]:
        """Return the outputs to compute."""
        return set(self._requested)

    def get_response_sender(self) -> InferenceResponseSender:
        """Return where to send responses, now or later.

        Raises TritonModelException for a request the model made itself.
        """
        raise TritonModelException("Only a request given to 'execute' has a response sender.")

    def is_cancelled(self) -> bool:
        """Return whether the client no longer waits."""
        return False

    def set_release_flags(self, flags: int) -> None:
        """Set the release flags: TRITONSERVER_REQUEST_RELEASE_RESCHEDULE puts the request back into the queue.

        That happens when `execute` returns.
        """
        self._release_flags = arguments.integer("flags", flags, 0, _UINT32)

    @property
    def is_rescheduled(self) -> bool:
        """True if the model wants the request to come again."""
        return self._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE

    def exec(self, decoupled: bool = False) -> InferenceResponse | ResponseIterator:
        """Run the named model and wait. With `decoupled`, an iterator over its responses, as they come."""
        call = self._called(decoupled)
        return self._iterator(call) if decoupled else self._only(call)

    def async_exec(self, decoupled: bool = False) -> "asyncio.Future[InferenceResponse | ResponseIterator]":
        """Run `exec` without a waiting thread. Cancelling it cancels the request.

        With `decoupled`, the result is an iterator once the first response is there.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[InferenceResponse | ResponseIterator] = loop.create_future()
        call = self._called(decoupled)

        def finish() -> None:
            if not answer.done():
                answer.set_result(self._iterator(call) if decoupled else self._only(call))

        def give_up(_: "asyncio.Future[InferenceResponse | ResponseIterator]") -> None:
            if answer.cancelled():
                call.cancel()

        answer.add_done_callback(give_up)
        call.when_ready(lambda: soon(loop, finish))
        return answer

    def _called(self, decoupled: bool) -> Call:
        running = self._caller()
        if not running.serving:
            raise TritonModelException("BLS is only supported during the 'execute' function.")
        try:
            return running.host.call(Infer(self._outgoing(), bool(decoupled)))
        except ServingError as error:
            return RefusedCall(error)

    def _caller(self) -> context.ModelContext:
        """Return the model that calls: a thread of unknown origin calls for the model that made the request."""
        return context.entered_now() or self._made_by

    def _only(self, call: Call) -> InferenceResponse:
        return next_response(call, self._target())[0] or InferenceResponse()

    def _iterator(self, call: Call) -> ResponseIterator:
        reaper.prepare()
        return ResponseIterator(call, self._target())

    def _target(self) -> str:
        return self._model_name

    def _outgoing(self) -> messages.InferRequest:
        outgoing = messages.InferRequest(
            model_name=self._model_name,
            inputs={item.name(): tensor.to_message(item) for item in self._inputs},
            model_version="" if self._model_version < 0 else str(self._model_version),
            id=self._id,
            requested_outputs=tuple(self._requested),
            parameters=dict(self._parameters),
            sequence_id=self._correlation_id,
            sequence_start=bool(self._flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START),
            sequence_end=bool(self._flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END),
            timeout_us=self._timeout,
        )
        outgoing.trace = self._trace.trace
        _check_names(outgoing, [item.name() for item in self._inputs])
        return outgoing


class ReceivedRequest(InferenceRequest):
    """A request that the server hands to `execute`. What of it a model does not look at is not made."""

    def __init__(
        self,
        message: messages.InferRequest,
        outputs: Sequence[str],
        index: int,
        responder: Responder,
        open_channel: "Callable[[ReceivedRequest], ResponseChannel]",
    ) -> None:
        # Instead of the base's: `message` has all that it would keep.
        self.message = message
        self.outputs = outputs
        self.index = index
        self.responder = responder
        self.channel: ResponseChannel | None = None
        self.preferred_memory = None
        self._open_channel = open_channel
        self._made: list[tensor.Tensor] | None = None
        self._set_flags: int | None = None
        self._sender: InferenceResponseSender | None = None
        self._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL

    def inputs(self) -> list[tensor.Tensor]:
        """Return the inputs, decoded at the first call."""
        made = self._made
        if made is None:
            made = self._made = [tensor.from_message(item) for item in self.message.inputs.values()]
        return made

    def request_id(self) -> str:
        return self.message.id

    def correlation_id(self) -> int | str:
        return self.message.sequence_id

    def flags(self) -> int:
        if self._set_flags is not None:
            return self._set_flags
        start = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START if self.message.sequence_start else 0
        end = TRITONSERVER_REQUEST_FLAG_SEQUENCE_END if self.message.sequence_end else 0
        return start | end

    def set_flags(self, flags: int) -> None:
        self._set_flags = arguments.integer("flags", flags, 0, _UINT32)

    def timeout(self) -> int:
        return self.message.timeout_us

    def parameters(self) -> str:
        return json.dumps(self.message.parameters)

    def trace(self) -> InferenceTrace:
        return InferenceTrace(self.message.trace)

    def requested_output_names(self) -> set[str]:
        return set(self.outputs)

    def get_response_sender(self) -> InferenceResponseSender:
        if self._sender is None:
            if self.channel is None:
                self.channel = self._open_channel(self)
            reaper.prepare()
            self._sender = InferenceResponseSender(self.channel)
        return self._sender

    def is_cancelled(self) -> bool:
        return self.responder.is_cancelled(self.index)

    def _caller(self) -> context.ModelContext:
        return context.current()

    def _target(self) -> str:
        return self.message.model_name

    def _outgoing(self) -> messages.InferRequest:
        like = self.message
        outgoing = messages.InferRequest(
            model_name=like.model_name,
            inputs={item.name(): tensor.to_message(item) for item in self.inputs()},
            id=like.id,
            requested_outputs=tuple(self.outputs),
            parameters=dict(like.parameters),
            sequence_id=like.sequence_id,
            sequence_start=bool(self.flags() & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START),
            sequence_end=bool(self.flags() & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END),
            timeout_us=like.timeout_us,
        )
        outgoing.trace = like.trace
        return outgoing


def _correlation_id(value: Any) -> int | str:
    """Return a correlation ID: an integer of 64 bits or text, nothing that only behaves like one."""
    if isinstance(value, int):
        return arguments.integer("correlation_id", value, 0, _UINT64)
    if isinstance(value, str):
        return arguments.text("correlation_id", value)
    raise TritonModelException(f"Correlation ID must be integer or string, not {type(value).__name__}")


def _check_request(request_id: str, model_name: str, inputs: Sequence[tensor.Tensor], outputs: Sequence[str]) -> None:
    where = f"for request with id '{request_id}' and model name '{model_name}' should not be empty."
    if any(item is None for item in inputs):
        raise TritonModelException(f"Input tensor {where}")
    for item in inputs:
        if not isinstance(item, tensor.Tensor):
            raise TypeError(f"an element of inputs must be Tensor, not {type(item).__name__}")
    if any(name == "" for name in outputs):
        raise TritonModelException(f"Requested output name {where}")


def _check_names(request: messages.InferRequest, names: list[str]) -> None:
    """Raise ServingError where two inputs have the same name."""
    if len(request.inputs) < len(names):
        again = next(name for index, name in enumerate(names) if name in names[:index])
        raise invalid(f"{request.log_prefix}input '{again}' already exists in request")


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> tensor.Tensor | None:
    """Return the request's input of that name, None where it has none."""
    for candidate in inference_request.inputs():
        if candidate.name() == name:
            return candidate
    return None

"""Templates and errors as bytes: MessagePack read into typed structs, and then checked for what types cannot say."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, invalid
from argosy_runtime.messages import InferRequest, Parameter, RequestTemplate, ResponseTemplate, TensorSpec
from argosy_runtime.modelconfig import ConfigError
from argosy_runtime.modelconfig.shapes import MOST_DIMENSIONS, size_problem
from argosy_runtime.tensors import raw_tensor

from .frames import FrameError

_Dimension = Annotated[int, msgspec.Meta(ge=0)]
_Shape = Annotated[tuple[_Dimension, ...], msgspec.Meta(max_length=MOST_DIMENSIONS)]
_Spec = tuple[str, str, _Shape]


class _RequestBody(msgspec.Struct, array_like=True):
    model_name: str
    model_version: str
    inputs: list[_Spec]
    requested_outputs: tuple[str, ...]
    parameters: dict[str, Parameter]
    sequence_id: int | str
    sequence_start: bool
    sequence_end: bool
    priority: int
    timeout_us: int


class _ResponseBody(msgspec.Struct, array_like=True):
    outputs: list[_Spec]
    parameters: dict[str, Parameter]


class ErrorBody(msgspec.Struct, array_like=True):
    """A ServingError."""

    kind: ErrorKind
    message: str
    reason: FailureReason | None
    device_error: str = ""

    @classmethod
    def of(cls, error: ServingError) -> "ErrorBody":
        """Return the message of an error."""
        return cls(error.kind, plain_text(error.message), error.reason, plain_text(error.device_error))

    def error(self) -> ServingError:
        """Return the error of a message."""
        return ServingError(self.kind, self.message, self.reason, self.device_error)


_encoder: Final = msgspec.msgpack.Encoder()
_sequence_decoder: Final = msgspec.msgpack.Decoder(tuple[int | str, bool, bool])
_request_decoder: Final = msgspec.msgpack.Decoder(_RequestBody)
_response_decoder: Final = msgspec.msgpack.Decoder(_ResponseBody)
_error_decoder: Final = msgspec.msgpack.Decoder(ErrorBody)


def pack_request(template: RequestTemplate) -> bytes:
    """Return a template as bytes. Raises ServingError where a tensor is larger than any may be."""
    return _encoder.encode(
        _RequestBody(
            plain_text(template.model_name),
            template.model_version,
            [_packed(spec) for spec in template.inputs],
            tuple([plain_text(name) for name in template.requested_outputs]),
            _plain(template.parameters),
            plain_text(template.sequence_id) if isinstance(template.sequence_id, str) else template.sequence_id,
            template.sequence_start,
            template.sequence_end,
            max(0, template.priority),  # a copy for a shadow looks like any other request to a model
            template.timeout_us,
        )
    )


def unpack_request(data: bytes) -> RequestTemplate:
    """Return the inverse of `pack_request`. Raises FrameError."""
    try:
        body = _request_decoder.decode(data)
    except msgspec.DecodeError as error:
        raise FrameError(f"a request's template is wrong: {error}") from error
    like = InferRequest(
        body.model_name,
        {name: raw_tensor(name, datatype, shape, b"") for name, datatype, shape in map(_checked, body.inputs)},
        body.model_version,
        "",
        body.requested_outputs,
        body.parameters,
        body.sequence_id,
        body.sequence_start,
        body.sequence_end,
        body.priority,
        body.timeout_us,
    )
    if len(like.inputs) != len(body.inputs):
        raise FrameError("a request's template has an input twice")
    return RequestTemplate(like)


def pack_sequence(identifier: int | str, start: bool, end: bool) -> bytes:
    """Return the sequence of one request, with its flags, as bytes."""
    return _encoder.encode((plain_text(identifier) if isinstance(identifier, str) else identifier, start, end))


def unpack_sequence(data: bytes) -> tuple[int | str, bool, bool]:
    """Return the inverse of `pack_sequence`. Raises FrameError."""
    try:
        return _sequence_decoder.decode(data)
    except msgspec.DecodeError as error:
        raise FrameError(f"a request's sequence is wrong: {error}") from error


def pack_response(outputs: Sequence[TensorSpec], parameters: Mapping[str, Parameter]) -> bytes:
    """Return a template as bytes. Raises as `pack_request`."""
    return _encoder.encode(_ResponseBody([_packed(spec) for spec in outputs], _plain(parameters)))


def unpack_response(data: bytes) -> ResponseTemplate:
    """Return the inverse of `pack_response`. Raises FrameError."""
    try:
        body = _response_decoder.decode(data)
    except msgspec.DecodeError as error:
        raise FrameError(f"a response's template is wrong: {error}") from error
    return ResponseTemplate([TensorSpec(*_checked(spec)) for spec in body.outputs], body.parameters)


def pack_error(error: ServingError) -> bytes:
    """Return an error as bytes."""
    return _encoder.encode(ErrorBody.of(error))


def unpack_error(data: bytes) -> ServingError:
    """Return the inverse of `pack_error`. Raises FrameError."""
    try:
        return _error_decoder.decode(data).error()
    except msgspec.DecodeError as error:
        raise FrameError(f"an error is wrong: {error}") from error


def plain_text(text: str) -> str:
    """Return text that UTF-8 can encode: a model may put anything into a message."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _packed(spec: TensorSpec) -> _Spec:
    if problem := size_problem(spec.shape):
        raise invalid(f"invalid shape for tensor '{spec.name}': {problem}")
    return (plain_text(spec.name), spec.datatype, spec.shape)


def _checked(spec: _Spec) -> _Spec:
    name, datatype, shape = spec
    if problem := size_problem(shape):
        raise FrameError(f"tensor '{name}': {problem}")
    try:
        TensorSpec(name, datatype, shape)
    except ConfigError as error:
        raise FrameError(str(error)) from error
    return spec


def _plain(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return parameters for the wire: integers beyond 64 bits become floats, as in Triton's own JSON."""
    return {plain_text(name): _plain_value(value) for name, value in parameters.items()}


def _plain_value(value: Parameter) -> Parameter:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else float(value)
    if isinstance(value, float):
        return float(value)
    return plain_text(str(value))

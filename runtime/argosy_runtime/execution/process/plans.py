"""What requests or responses alike have in common is sent once, and is a number from then on.

Each side keeps what it has sent and what it has got, by number, up to `CAPACITY`; the number of the oldest is then used
anew. A new plan stands in the frame that needs it first, so both sides always mean the same by a number.
"""

from collections.abc import Mapping
from math import prod
from typing import Annotated, Any, Final

import msgspec

from argosy_runtime.messages import InferRequest, Parameter, RequestPlan, ResponsePlan, TensorSpec
from argosy_runtime.modelconfig import ConfigError
from argosy_runtime.tensors import Data, raw_tensor, string_count

from .frames import FrameError

CAPACITY: Final = 1024
_MOST_ELEMENTS: Final = 1 << 40

_Dimension = Annotated[int, msgspec.Meta(ge=0)]
_Shape = Annotated[tuple[_Dimension, ...], msgspec.Meta(max_length=32)]
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


_encoder: Final = msgspec.msgpack.Encoder()
_request_decoder: Final = msgspec.msgpack.Decoder(_RequestBody)
_response_decoder: Final = msgspec.msgpack.Decoder(_ResponseBody)


class SentPlans:
    """Which number the other side knows a plan by. A plan is known by its key, equal for equal plans."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def find(self, key: object) -> int:
        """Its number; -1 where the other side does not know it."""
        return self._numbers.get(key, -1)

    def add(self, key: object) -> int:
        """A number for one that it does not know."""
        number = len(self._numbers)
        if number == CAPACITY:
            number = self._numbers.pop(next(iter(self._numbers)))
        self._numbers[key] = number
        return number


def pack_request(plan: RequestPlan) -> bytes:
    """A plan as bytes."""
    return _encoder.encode(
        _RequestBody(
            plain_text(plan.model_name),
            plan.model_version,
            [_packed(spec) for spec in plan.inputs],
            tuple([plain_text(name) for name in plan.requested_outputs]),
            _plain(plan.parameters),
            plain_text(plan.sequence_id) if isinstance(plan.sequence_id, str) else plan.sequence_id,
            plan.sequence_start,
            plan.sequence_end,
            plan.priority,
            plan.timeout_us,
        )
    )


def unpack_request(data: bytes) -> RequestPlan:
    """The inverse of `pack_request`. Raises FrameError."""
    try:
        body = _request_decoder.decode(data)
    except msgspec.DecodeError as error:
        raise FrameError(f"a request's plan is wrong: {error}") from error
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
        raise FrameError("a request's plan has an input twice")
    return RequestPlan(like)


def pack_response(outputs: list[TensorSpec], parameters: Mapping[str, Parameter]) -> bytes:
    """A plan as bytes."""
    return _encoder.encode(_ResponseBody([_packed(spec) for spec in outputs], _plain(parameters)))


def unpack_response(data: bytes) -> ResponsePlan:
    """The inverse of `pack_response`. Raises FrameError."""
    try:
        body = _response_decoder.decode(data)
    except msgspec.DecodeError as error:
        raise FrameError(f"a response's plan is wrong: {error}") from error
    return ResponsePlan([TensorSpec(*_checked(spec)) for spec in body.outputs], body.parameters)


def check_tensor(spec: TensorSpec, data: Data) -> None:
    """Whether this can be such a tensor's data. Raises FrameError."""
    if spec.size >= 0:
        if len(data) != spec.size:
            raise FrameError(f"tensor '{spec.name}' of {spec.size} bytes has {len(data)}")
    elif string_count(data) != prod(spec.shape):
        raise FrameError(f"tensor '{spec.name}' is not {prod(spec.shape)} strings")


def plain_text(text: str) -> str:
    """Text that UTF-8 can write: a model may put anything into a message."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _packed(spec: TensorSpec) -> _Spec:
    return (plain_text(spec.name), spec.datatype, spec.shape)


def _checked(spec: _Spec) -> _Spec:
    name, datatype, shape = spec
    if prod([max(1, dimension) for dimension in shape]) > _MOST_ELEMENTS:
        raise FrameError(f"tensor '{name}' has shape {list(shape)}")
    try:
        TensorSpec(name, datatype, shape)
    except ConfigError as error:
        raise FrameError(str(error)) from error
    return spec


def _plain(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """As the wire can have them: integers that 64 bits do not hold become floats, as in Triton's own JSON."""
    return {plain_text(name): _plain_value(value) for name, value in parameters.items()}


def _plain_value(value: Parameter) -> Parameter:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else float(value)
    if isinstance(value, float):
        return float(value)
    return plain_text(str(value))

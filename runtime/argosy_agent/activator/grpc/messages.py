"""gRPC methods and messages of the V2 protocol: the kind of a method, and the model that a message names. Pure.

The name of a model is field 1 in each message that has one. It is read by hand, because protobuf's own classes would
decode tensors that are only forwarded.
"""

from argosy_agent.activator.request_kind import RequestKind

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NAME = 1


class MessageError(Exception):
    """The bytes are no protobuf message that names a model."""


def model_of(message: bytes) -> str:
    """Return the name; empty where the message has none. Raises MessageError."""
    name, at = b"", 0
    while at < len(message):
        tag, at = _varint(message, at)
        field, kind = tag >> 3, tag & 7
        if kind == _BYTES:
            size, at = _varint(message, at)
            if at + size > len(message):
                raise MessageError(f"field {field} ends behind the message")
            if field == _NAME:
                name = message[at : at + size]
            at += size
        else:
            at = _behind(message, at, kind, field)
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise MessageError(f"field {_NAME} is no UTF-8: {error.reason}") from error


def name_message(name: str) -> bytes:
    """Return a message whose field 1 is this text."""
    data = name.encode()
    return bytes([_NAME << 3 | _BYTES, len(data)]) + data


def enum_message(value: int) -> bytes:
    """Return a message whose field 1 is this number, below 128; 1 is also true."""
    return bytes([_NAME << 3 | _VARINT, value])


def _behind(message: bytes, at: int, kind: int, field: int) -> int:
    if kind == _VARINT:
        return _varint(message, at)[1]
    if kind in (_FIXED32, _FIXED64):
        return at + (4 if kind == _FIXED32 else 8)
    raise MessageError(f"field {field} has the wire type {kind}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if not byte & 0x80:
            return value, at
        shift += 7
    raise MessageError("a number ends behind the message")


_V2 = "/inference.GRPCInferenceService/"
HEALTH_CHECK, HEALTH_WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
_METHODS = {
    f"{_V2}ModelInfer": RequestKind.QUEUE,
    f"{_V2}ModelStreamInfer": RequestKind.QUEUE,
    f"{_V2}ModelMetadata": RequestKind.QUEUE,
    f"{_V2}ModelConfig": RequestKind.QUEUE,
    f"{_V2}ModelReady": RequestKind.READY,
    f"{_V2}ModelStatistics": RequestKind.PASS,
    f"{_V2}ServerLive": RequestKind.LIVE,
    f"{_V2}ServerReady": RequestKind.SERVER_READY,
    f"{_V2}ServerMetadata": RequestKind.SERVER,
    HEALTH_CHECK: RequestKind.SERVER_READY,
    HEALTH_WATCH: RequestKind.SERVER_READY,
}
OWN = {
    RequestKind.LIVE: enum_message(1),
    RequestKind.SERVER_READY: enum_message(1),
    RequestKind.READY: enum_message(1),
    RequestKind.SERVER: name_message("argosy"),
}
"""The answers of the activator itself."""
NOT_READY = {HEALTH_CHECK: enum_message(2), HEALTH_WATCH: enum_message(2)}
"""The answers before the members are known: NOT_SERVING; for other methods false, an empty message."""


def kind_of(method: str) -> RequestKind:
    """Return the kind of calls of a method."""
    return _METHODS.get(method, RequestKind.OTHER)

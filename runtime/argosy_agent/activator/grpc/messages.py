"""The name of a model in a message of the V2 protocol: field 1, in each that has one. Pure.

Read by hand: protobuf's own classes would decode tensors that are only passed on.
"""

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

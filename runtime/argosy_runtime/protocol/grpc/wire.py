"""ModelInferRequest and ModelInferResponse cut by their fields into id, data, and the rest.

The rest of a request is a key: equal keys mean the same, so it is decoded once. A message whose fields are not in the
order of the client libraries is left to protobuf.
"""

from typing import Final

from argosy_runtime.tensors import Data

# Field numbers of the two messages, with the wire type of what has a length.
_ID: Final = 3 << 3 | 2
_PARAMETER: Final = 4 << 3 | 2
_RAW_INPUT: Final = 7 << 3 | 2
_RAW_OUTPUT: Final = b"\x32"
_RESPONSE_ID: Final = b"\x1a"
_INFER_RESPONSE: Final = b"\x12"
# model_name, model_version, parameters, inputs, outputs: their bytes are part of the key.
_KEYED: Final = frozenset((0x0A, 0x12, 0x22, 0x2A, 0x32))
# How a parameter of a sequence begins: its name's field and length, and the name.
_SEQUENCE: Final = tuple(
    [b"\x0a%c%b" % (len(name), name) for name in (b"sequence_id", b"sequence_start", b"sequence_end")]
)
_MAX_SHIFT: Final = 28
# Smaller pieces are copied: cheaper than a view, and no piece keeps the whole message alive.
_COPY_BELOW: Final = 1 << 15
_SHORT: Final = 1 << 14
# Of a request whose inputs lie in shared memory.
_LONGEST_LOCATED: Final = 4096


class Cut:
    """A request in parts: `key` is all of it but its id (`id`, UTF-8), the parameters of its `sequence` as they came,
    and its raw contents (`raw`).
    """

    __slots__ = ("id", "key", "raw", "sequence")

    def __init__(self, key: bytes, request_id: bytes, sequence: bytes, raw: list[Data]) -> None:
        self.key = key
        self.sequence = sequence
        self.id = request_id
        self.raw = raw


def cut(message: bytes, start: int = 0) -> Cut | None:
    """Cut the request that begins at `start`; None where protobuf must read it.

    That is a request without raw contents, too, unless it is short: its inputs may lie in shared memory.
    """
    end, position = len(message), start
    keyed_from, has_id = start, False
    key = request_id = sequence = b""
    while position < end:
        tag = message[position]
        if tag == _RAW_INPUT:
            break
        head, stop = _extent(message, position + 1, end)
        if stop < 0 or (tag not in _KEYED and (tag != _ID or has_id)):
            return None
        if tag == _ID:
            has_id, request_id = True, message[head:stop]
            key += message[keyed_from:position]
            keyed_from = stop
        elif tag == _PARAMETER and message.startswith(_SEQUENCE, head, stop):
            sequence += message[position:stop]
            key += message[keyed_from:position]
            keyed_from = stop
        position = stop
    raw = _raw_contents(message, position, end)
    if raw is None or (not raw and end - start > _LONGEST_LOCATED):
        return None
    return Cut(key + message[keyed_from:position], request_id, sequence, raw)


def _raw_contents(message: bytes, position: int, end: int) -> list[Data] | None:
    """Return the raw contents from here to the end; None if anything else is there."""
    raw: list[Data] = []
    while position < end:
        if message[position] != _RAW_INPUT:
            return None
        head, position = _extent(message, position + 1, end)
        if position < 0:
            return None
        raw.append(message[head:position] if position - head < _COPY_BELOW else memoryview(message)[head:position])
    return raw


def _extent(message: bytes, position: int, end: int) -> tuple[int, int]:
    """Return where the bytes of a field begin and end, whose length is at `position`; an end below 0 for a bad one."""
    size = shift = 0
    while position < end:
        byte = message[position]
        position += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return position, position + size if position + size <= end else -1
        shift += 7
        if shift > _MAX_SHIFT:
            break
    return position, -1


def varint(value: int) -> bytes:
    """Return a number as a protobuf varint."""
    if value < _SHORT:
        return _VARINTS[value]
    return _varint(value)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_VARINTS: Final = [_varint(value) for value in range(_SHORT)]


def response_parts(head: bytes, request_id: str, raw: list[Data]) -> list[Data]:
    """Return a ModelInferResponse; `head` is all of it without the id and the raw contents."""
    parts: list[Data] = [head]
    if request_id:
        encoded = request_id.encode()
        parts.append(_RESPONSE_ID + varint(len(encoded)) + encoded)
    for data in raw:
        parts.append(_RAW_OUTPUT + varint(len(data)))
        parts.append(data)
    return parts


def stream_parts(inner: list[Data]) -> list[Data]:
    """Return a ModelStreamInferResponse around a ModelInferResponse."""
    return [_INFER_RESPONSE + varint(total(inner)), *inner]


def total(parts: list[Data]) -> int:
    """Return the size of all parts in bytes."""
    return sum(map(len, parts))

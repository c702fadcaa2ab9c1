"""Frames as bytes (RFC 9113, sections 4 and 6)."""

import struct
from collections.abc import Iterable
from typing import Final

from .errors import ErrorCode, frame_size_error, protocol_error

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE_SETTING: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20

HEAD_SIZE: Final = 9
MAX_STREAM_ID: Final = 0x7FFFFFFF
MAX_WINDOW: Final = 0x7FFFFFFF
DEFAULT_WINDOW: Final = 65535
DEFAULT_FRAME_SIZE: Final = 16384
MAX_FRAME_SIZE: Final = 0xFFFFFF

# Three bytes of length and one of type are one number: the length above the lowest eight bits.
_HEAD: Final = struct.Struct(">IBI")
_U32: Final = struct.Struct(">I")
_SETTING: Final = struct.Struct(">HI")

read_head: Final = _HEAD.unpack_from
"""Of a buffer and an offset: (length << 8 | type, flags, the stream's id with its reserved bit)."""


def head(kind: int, flags: int, stream_id: int, size: int) -> bytes:
    """Return the nine bytes before a payload of `size` bytes."""
    return _HEAD.pack(size << 8 | kind, flags, stream_id)


def frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    """Return a complete frame."""
    return _HEAD.pack(len(payload) << 8 | kind, flags, stream_id) + payload


def header_frames(stream_id: int, block: bytes, flags: int, limit: int) -> bytes:
    """Return a header block as HEADERS and as many CONTINUATION as payloads of `limit` bytes need."""
    if len(block) <= limit:
        return frame(HEADERS, flags | END_HEADERS, stream_id, block)
    pieces = [block[start : start + limit] for start in range(0, len(block), limit)]
    first, *middle, last = pieces
    return b"".join(
        [
            frame(HEADERS, flags, stream_id, first),
            *[frame(CONTINUATION, 0, stream_id, piece) for piece in middle],
            frame(CONTINUATION, END_HEADERS, stream_id, last),
        ]
    )


def settings(pairs: Iterable[tuple[int, int]]) -> bytes:
    """Return SETTINGS with these identifiers and values."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(key, value) for key, value in pairs))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """Return the identifiers and values of a SETTINGS payload, whose length is a multiple of six."""
    return list(_SETTING.iter_unpack(payload))


def ping(payload: bytes, flags: int = 0) -> bytes:
    """Return PING with eight bytes."""
    return frame(PING, flags, 0, payload)


def goaway(last_stream_id: int, code: ErrorCode, message: str = "") -> bytes:
    """Return GOAWAY; the message is for the peer's log."""
    return frame(GOAWAY, 0, 0, _U32.pack(last_stream_id) + _U32.pack(code) + message.encode())


def rst_stream(stream_id: int, code: int) -> bytes:
    """Return RST_STREAM."""
    return frame(RST_STREAM, 0, stream_id, _U32.pack(code))


def window_update(stream_id: int, increment: int) -> bytes:
    """Return WINDOW_UPDATE; stream 0 is the connection."""
    return frame(WINDOW_UPDATE, 0, stream_id, _U32.pack(increment))


def read_u32(payload: bytes, offset: int = 0) -> int:
    """Return four bytes as a number."""
    value: int = _U32.unpack_from(payload, offset)[0]
    return value


def unpadded(payload: bytes) -> bytes:
    """Return the payload of a PADDED frame without its padding. Raises PeerError where that is longer than the
    frame.
    """
    if not payload or payload[0] >= len(payload):
        raise protocol_error("more padding than payload")
    return payload[1 : len(payload) - payload[0]]


def header_fragment(flags: int, stream_id: int, payload: bytes) -> bytes:
    """Return what a HEADERS frame holds of its header block. Raises PeerError for bad padding or priority."""
    if flags & PADDED:
        payload = unpadded(payload)
    if flags & HAS_PRIORITY:
        check_priority(stream_id, payload[:5])
        payload = payload[5:]
    return payload


def check_priority(stream_id: int, payload: bytes) -> None:
    """Raise PeerError for a malformed priority. A well-formed one has no effect."""
    if len(payload) != 5:
        raise frame_size_error("a priority of a size other than 5")
    if read_u32(payload) & MAX_STREAM_ID == stream_id:
        raise protocol_error("a stream that depends on itself")

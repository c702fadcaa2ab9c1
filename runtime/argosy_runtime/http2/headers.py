"""Header fields: the head of a request, checked as HTTP requires (RFC 9113, 8.2 and 8.3), and prepared responses."""

import struct
from collections.abc import Sequence
from typing import Final

from .errors import MalformedError
from .frames import DATA, END_HEADERS, END_STREAM, HEADERS
from .hpack.tables import Field

_PSEUDO: Final = frozenset((b":method", b":path", b":scheme", b":authority"))
_REQUIRED: Final = (b":method", b":path", b":scheme")
_OF_A_CONNECTION: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
# Python refuses to read numbers of thousands of digits.
_MOST_DIGITS: Final = 1000
_NOT_IN_VALUES: Final = b"\0\r\n"


class RequestHead:
    """A request's pseudo-headers and its fields, names in lower case. `content_length` is -1 where none is declared."""

    __slots__ = ("authority", "content_length", "fields", "method", "path", "scheme")

    def __init__(self, pseudo: dict[bytes, bytes], fields: list[Field]) -> None:
        self.method = pseudo[b":method"]
        self.path = pseudo[b":path"]
        self.scheme = pseudo[b":scheme"]
        self.authority = pseudo.get(b":authority", b"")
        self.fields = fields
        self.content_length = _content_length(fields)


def request_head(block: Sequence[Field]) -> RequestHead:
    """Return the head that consists of a block's fields. Raises MalformedError."""
    pseudo: dict[bytes, bytes] = {}
    fields: list[Field] = []
    for name, value in block:
        if name.startswith(b":"):
            if fields or name in pseudo or name not in _PSEUDO:
                raise MalformedError(f"pseudo-header {name!r} unknown, twice or out of place")
            pseudo[name] = value
        else:
            _check(name, value)
            fields.append((name, value))
    if not all(pseudo.get(name) for name in _REQUIRED):
        raise MalformedError("a pseudo-header is missing")
    return RequestHead(pseudo, fields)


def check_trailers(block: Sequence[Field]) -> None:
    """Raise MalformedError unless these fields may follow a body."""
    for name, value in block:
        if name.startswith(b":"):
            raise MalformedError("a pseudo-header behind the body")
        _check(name, value)


def _check(name: bytes, value: bytes) -> None:
    if not name or name != name.lower() or name in _OF_A_CONNECTION or b":" in name or min(name) <= 0x20:
        raise MalformedError(f"header field {name!r} is not allowed")
    if name == b"te" and value != b"trailers":
        raise MalformedError("te may only be trailers")
    if any(byte in value for byte in _NOT_IN_VALUES):
        raise MalformedError(f"the value of {name!r} is not allowed")


def _content_length(fields: Sequence[Field]) -> int:
    declared = {value for name, value in fields if name == b"content-length"}
    if not declared:
        return -1
    text = declared.pop()
    if declared or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise MalformedError("content-length is not one number")
    return int(text)


class PreparedResponse:
    """A header block and a trailer block, each at most 16,384 bytes, so that one frame takes it at any peer's limit."""

    __slots__ = ("_closing", "_closing_start", "_opening", "_opening_start", "head", "trailers")

    def __init__(self, head: bytes, trailers: bytes) -> None:
        self.head = head
        self.trailers = trailers
        self._opening = struct.Struct(f">IBI{len(head)}sIBI").pack
        self._opening_start = len(head) << 8 | HEADERS
        self._closing = struct.Struct(f">IBI{len(trailers)}s").pack
        self._closing_start = len(trailers) << 8 | HEADERS

    def opening(self, stream_id: int, size: int) -> bytes:
        """Return HEADERS and the head of a DATA frame with `size` bytes."""
        return self._opening(self._opening_start, END_HEADERS, stream_id, self.head, size << 8 | DATA, 0, stream_id)

    def closing(self, stream_id: int) -> bytes:
        """Return the trailers."""
        return self._closing(self._closing_start, END_HEADERS | END_STREAM, stream_id, self.trailers)

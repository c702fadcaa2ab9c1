"""Bodies as they come: of a declared length, or in chunks (RFC 9112, section 7.1)."""

from typing import Final

_MAX_LINE: Final = 4096
_MAX_TRAILER: Final = 1 << 16
_MAX_DIGITS: Final = 15
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
MOST_CHUNKS: Final = 65536
"""How many chunks a body may have, each of which costs an object, however small it is."""

_SIZE, _CONTENT, _END, _TRAILER = range(4)


class BodyError(Exception):
    """The chunks of a body are malformed, or, with a message for the client, too many."""


class Body:
    """Collects a body's bytes as they come. `size` counts them.

    A body longer than `limit` bytes (-1: no limit) is counted, and none of it is kept.
    """

    __slots__ = ("_limit", "_missing", "_pieces", "size")

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._pieces: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> bytes | None:
        """Take more. Once the body is complete, return the bytes behind it. Raises BodyError."""
        raise NotImplementedError

    def content(self) -> bytes:
        """Return the body, empty where it was too long."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def _take(self, data: bytes, at: int) -> int:
        """Take the available part of the missing bytes. Return where it ends."""
        piece = data[at : at + self._missing]
        self._missing -= len(piece)
        self.size += len(piece)
        if 0 <= self._limit < self.size:
            self._pieces.clear()
        else:
            self._pieces.append(piece)
        return at + len(piece)


class SizedBody(Body):
    """A body of `length` bytes."""

    __slots__ = ()

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(limit)
        self._missing = length

    def feed(self, data: bytes) -> bytes | None:
        at = self._take(data, 0)
        return None if self._missing else data[at:]


class ChunkedBody(Body):
    """A body in chunks."""

    __slots__ = ("_chunks", "_rest", "_state", "_trailer")

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._rest = b""
        self._state = _SIZE
        self._trailer = 0
        self._chunks = 0

    def feed(self, data: bytes) -> bytes | None:
        data = self._rest + data if self._rest else data
        at = 0
        while True:
            if self._state == _CONTENT:
                at = self._take(data, at)
                if self._missing:
                    self._rest = b""
                    return None
                self._state = _END
            end = data.find(b"\r\n", at, at + _MAX_LINE)
            if end < 0:
                if len(data) - at >= _MAX_LINE:
                    raise BodyError
                self._rest = data[at:]
                return None
            line = data[at:end]
            at = end + 2
            if self._is_last(line):
                return data[at:]

    def _is_last(self, line: bytes) -> bool:
        """Take a line that is not content. Return whether it ends the body."""
        if self._state == _SIZE:
            self._missing = _size(line)
            self._state = _CONTENT if self._missing else _TRAILER
            self._chunks += 1
            if self._chunks > MOST_CHUNKS and self._missing:
                raise BodyError(
                    f"Chunked request body exceeds maximum of {MOST_CHUNKS} non-empty chunks. Send fewer or larger "
                    "HTTP chunks."
                )
        elif self._state == _END:
            if line:
                raise BodyError
            self._state = _SIZE
        else:
            self._trailer += len(line)
            if self._trailer > _MAX_TRAILER:
                raise BodyError
            return not line
        return False


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].rstrip(b" \t")
    if not digits or len(digits) > _MAX_DIGITS or not _HEX.issuperset(digits):
        raise BodyError
    return int(digits, 16)

"""Bodies on their way: of a length that is known, or in chunks, as RFC 9112 section 7.1 has them."""

from typing import Final

_MAX_LINE: Final = 4096
_MAX_TRAILER: Final = 1 << 16
_MAX_DIGITS: Final = 15
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")

_SIZE, _CONTENT, _END, _TRAILER = range(4)


class BodyError(Exception):
    """The body is not in chunks as it should be."""


class Body:
    """Takes a body's bytes as they come. `size` counts those that have come.

    All of it is kept, or nothing where it is longer than `limit` bytes (-1: never).
    """

    __slots__ = ("_kept", "_limit", "_missing", "size")

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._kept: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> bytes | None:
        """Take more; once the body is complete, what follows it. Raises BodyError."""
        raise NotImplementedError

    def content(self) -> bytes:
        """Return what has been kept."""
        return self._kept[0] if len(self._kept) == 1 else b"".join(self._kept)

    def _take(self, data: bytes, at: int) -> int:
        """Take what there is of what is missing; where it ends."""
        piece = data[at : at + self._missing]
        self._missing -= len(piece)
        self.size += len(piece)
        if 0 <= self._limit < self.size:
            self._kept.clear()
        else:
            self._kept.append(piece)
        return at + len(piece)


class SizedBody(Body):
    """A body of `length` bytes."""

    __slots__ = ()

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(limit)
        self._missing = length

    def feed(self, data: bytes) -> bytes | None:
        """See `Body`."""
        at = self._take(data, 0)
        return None if self._missing else data[at:]


class ChunkedBody(Body):
    """A body in chunks."""

    __slots__ = ("_rest", "_state", "_trailer")

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._rest = b""
        self._state = _SIZE
        self._trailer = 0

    def feed(self, data: bytes) -> bytes | None:
        """See `Body`."""
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
        """Take a line that is not content; whether it ends the body."""
        if self._state == _SIZE:
            self._missing = _size(line)
            self._state = _CONTENT if self._missing else _TRAILER
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

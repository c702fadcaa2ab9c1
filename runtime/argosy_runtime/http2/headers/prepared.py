"""The head and the trailers that many responses share, encoded once."""

import struct

from argosy_runtime.http2.frames import DATA, END_HEADERS, END_STREAM, HEADERS


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

"""Bytes to frames."""

from typing import Final

from . import frames
from .errors import frame_size_error, protocol_error
from .frames import DATA, HEAD_SIZE, HEADERS, MAX_STREAM_ID, PADDED, PREFACE, read_head, unpadded

_GREETING: Final = len(PREFACE) + HEAD_SIZE


class FrameReader:
    """Cuts what a client sends into frames. A subclass acts on them.

    A DATA frame that comes in pieces is passed on as several, the last with its flags, so that nothing is copied to put
    it together; every other frame is passed on complete.
    """

    __slots__ = ("_body", "_have", "_incomplete_frames", "_need", "_pieces", "_too_large", "greeted")

    def __init__(self, max_frame: int) -> None:
        self.greeted = False
        """Whether the client has begun as it must."""
        self._too_large = max_frame + 1 << 8
        self._pieces: list[bytes] = []
        self._incomplete_frames = 0
        self._have = 0
        self._need = _GREETING
        self._body = (0, 0, 0)
        """Of an unfinished DATA frame: the bytes to come, its flags, its stream."""

    @property
    def unfinished_frame(self) -> int:
        """The number of the frame that has begun and not ended, 0 for none. Bodies of requests may be slow, and do not
        count.
        """
        return self._incomplete_frames if self._pieces else 0

    def feed(self, data: bytes) -> None:
        """Pass on the frames in these bytes and those before. Raises PeerError."""
        if self._pieces or not self.greeted:
            data = self._collected(data)
            if not data:
                return
        position = self._body_goes_on(data) if self._body[0] else 0
        if not self.greeted:
            position = self._greet(data)
        self._cut(data, position)

    def _cut(self, data: bytes, position: int) -> None:
        end, too_large = len(data), self._too_large
        while end - position >= HEAD_SIZE:
            head, flags, stream_id = read_head(data, position)
            kind, start = head & 0xFF, position + HEAD_SIZE
            position = start + (head >> 8)
            if position > end or head >= too_large:
                self._incomplete(head, flags, stream_id & MAX_STREAM_ID, data, start)
                return
            stream_id &= MAX_STREAM_ID
            if kind == HEADERS:
                self.on_headers(flags, stream_id, data[start:position])
            elif kind == DATA:
                payload = data[start:position]
                self.on_data(flags, stream_id, unpadded(payload) if flags & PADDED else payload, head >> 8)
            else:
                self.on_frame(kind, flags, stream_id, data[start:position])
        if position < end:
            self._keep(data[position:], HEAD_SIZE)

    def _incomplete(self, head: int, flags: int, stream_id: int, data: bytes, start: int) -> None:
        """Keep the last frame of what has come until it is complete. Raises PeerError where it is too large."""
        size = head >> 8
        if head >= self._too_large:
            raise frame_size_error("a frame larger than allowed")
        if head & 0xFF != DATA or flags & PADDED:
            self._keep(data[start - HEAD_SIZE :], HEAD_SIZE + size)
            return
        piece = data[start:]
        self._body = (size - len(piece), flags, stream_id)
        if piece:
            self.on_data(0, stream_id, piece, len(piece))

    def _body_goes_on(self, data: bytes) -> int:
        """Pass on more of an unfinished DATA frame. Return where the next frame begins."""
        left, flags, stream_id = self._body
        piece = data[:left]
        self._body = (left - len(piece), flags, stream_id)
        self.on_data(0 if left > len(piece) else flags, stream_id, piece, len(piece))
        return len(piece)

    def _keep(self, data: bytes, need: int) -> None:
        self._pieces, self._have, self._need = [data], len(data), need
        self._incomplete_frames += 1

    def _collected(self, data: bytes) -> bytes:
        """Return the bytes before and these, once they are enough; b"" until then."""
        self._pieces.append(data)
        self._have += len(data)
        if self._have < self._need:
            if not self.greeted:
                self._check_preface(b"".join(self._pieces))
            return b""
        joined = b"".join(self._pieces)
        self._pieces = []
        return joined

    @staticmethod
    def _check_preface(data: bytes) -> None:
        if not PREFACE.startswith(data[: len(PREFACE)]):
            raise protocol_error("this is no HTTP/2 client")

    def _greet(self, data: bytes) -> int:
        self._check_preface(data)
        head, flags, _ = read_head(data, len(PREFACE))
        if head & 0xFF != frames.SETTINGS or flags & frames.ACK:
            raise protocol_error("SETTINGS must come first")
        self.greeted = True
        return len(PREFACE)

    def on_data(self, flags: int, stream_id: int, payload: bytes, size: int) -> None:
        """Act on DATA; `size` bytes of windows, of which padding is no part of `payload`."""
        raise NotImplementedError

    def on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        """Act on HEADERS."""
        raise NotImplementedError

    def on_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        """Act on any other frame."""
        raise NotImplementedError

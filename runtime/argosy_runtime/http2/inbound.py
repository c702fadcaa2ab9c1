"""What a connection's client may send, and what it has sent while too much of its answers waits for it to read them."""

from typing import TYPE_CHECKING

from argosy_runtime.fifo_cache import FifoCache

from . import frames
from .errors import ErrorCode, PeerError, flow_control_error
from .limits import Limits

if TYPE_CHECKING:
    from .connection import Connection
    from .streams import Stream


class Inbound:
    """The connection's window for the bodies of requests, and the bodies that are deferred.

    While answers of more than `Limits.unsent_pause` bytes wait for windows or for the transport, no body reaches its
    receiver, and the window is not filled up again: so the client may send as much as is left of the window, no more.
    """

    __slots__ = ("_connection", "_credit", "_limits", "abandoned", "deferred")

    def __init__(self, connection: "Connection", limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._credit = limits.connection_window
        self.abandoned = FifoCache[int, None](limits.streams)
        """Streams that this side has ended while their clients may still be sending."""
        self.deferred: dict[int, Stream] = {}
        """Streams with bodies that have not reached their receivers, the oldest first."""

    def spend(self, size: int) -> None:
        """Count a DATA frame. Raises PeerError beyond the window."""
        self._credit -= size
        if self._credit < self._limits.connection_window >> 1:
            self._fill()

    def _fill(self) -> None:
        if self._credit < 0:
            raise flow_control_error("more than the connection's window")
        if not self.deferred:
            self._connection.output.write(frames.window_update(0, self._limits.connection_window - self._credit))
            self._credit = self._limits.connection_window

    def abandon(self, stream_id: int) -> None:
        """Remember for a while that this side has ended a stream before its client."""
        self.abandoned.put(stream_id, None)

    def heed_unwanted(self, flags: int, stream_id: int, stream: "Stream | None") -> None:
        """Drop DATA that no stream takes. Raises PeerError where the client had no reason to send it."""
        if stream is not None:
            raise PeerError(ErrorCode.STREAM_CLOSED, "DATA behind the end of its stream")
        if stream_id not in self.abandoned:
            raise PeerError(ErrorCode.STREAM_CLOSED, "DATA on a closed stream")
        if flags & frames.END_STREAM:
            self.abandoned.remove(stream_id)

    def is_deferred(self, stream: "Stream") -> bool:
        """Return whether what comes on a stream has to wait."""
        return self._connection.output.unsent > self._limits.unsent_pause or stream.deferred is not None

    def defer(self, stream: "Stream", payload: bytes) -> None:
        """Keep a piece of a body; the pieces of a stream become one."""
        if stream.deferred is None:
            stream.deferred = bytearray()
            self.deferred[stream.id] = stream
        stream.deferred += payload

    def next(self) -> "Stream | None":
        """Return the stream whose body comes next; None where none waits, or too many answers still do."""
        if not self.deferred or self._connection.output.unsent > self._limits.unsent_pause:
            return None
        return next(iter(self.deferred.values()))

    def take(self, stream: "Stream") -> bytes:
        """Take what was deferred of a stream."""
        body = stream.deferred
        self.remove(stream)
        return b"" if body is None else bytes(body)

    def remove(self, stream: "Stream") -> None:
        """Drop what was deferred of a stream."""
        stream.deferred = None
        if self.deferred.pop(stream.id, None) is not None and self._credit < self._limits.connection_window >> 1:
            self._fill()

"""The bodies of a connection's requests: how much may come, and what waits while too many answers wait to be read."""

from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.http2 import frames
from argosy_runtime.http2.conduct import Limits
from argosy_runtime.http2.errors import ErrorCode, PeerError, flow_control_error

from .output import Output


class Inbound:
    """The connection's window for the bodies of requests, and the deferred bodies by the ids of their streams.

    While answers of more than `Limits.unsent_pause` bytes wait for windows or for the transport, no body reaches its
    receiver, and the window is not filled up again: so the client may send as much as is left of the window, no more.
    """

    __slots__ = ("_credit", "_limits", "_output", "abandoned", "deferred")

    def __init__(self, output: Output, limits: Limits) -> None:
        self._output = output
        self._limits = limits
        self._credit = limits.connection_window
        self.abandoned = FifoCache[int, None](limits.streams)
        """Streams that this side has ended while their clients may still be sending."""
        self.deferred: dict[int, bytearray] = {}
        """Bodies, or parts of bodies, that have not reached their receivers, the oldest first."""

    def spend(self, size: int) -> None:
        """Subtract a DATA frame from the window. Raises PeerError beyond it."""
        self._credit -= size
        if self._credit < self._limits.connection_window >> 1:
            self._fill()

    def _fill(self) -> None:
        if self._credit < 0:
            raise flow_control_error("more than the connection's window")
        if not self.deferred:
            self._output.write(frames.window_update(0, self._limits.connection_window - self._credit))
            self._credit = self._limits.connection_window

    def discard(self, flags: int, stream_id: int) -> None:
        """Drop DATA of a stream that is closed. Raises PeerError where the client had no reason to send it."""
        if stream_id not in self.abandoned:
            raise PeerError(ErrorCode.STREAM_CLOSED, "DATA on a closed stream")
        if flags & frames.END_STREAM:
            self.abandoned.remove(stream_id)

    def is_deferred(self, stream_id: int) -> bool:
        """Return whether data of a stream has to wait."""
        return self._output.unsent > self._limits.unsent_pause or stream_id in self.deferred

    def defer(self, stream_id: int, payload: bytes) -> None:
        """Append a piece to the deferred body of a stream."""
        body = self.deferred.get(stream_id)
        if body is None:
            body = self.deferred[stream_id] = bytearray()
        body += payload

    def next(self) -> int:
        """Return the id of the stream whose body comes next; 0 where none waits, or has to wait on."""
        if not self.deferred or self._output.unsent > self._limits.unsent_pause:
            return 0
        return next(iter(self.deferred))

    def take(self, stream_id: int) -> bytes:
        """Remove and return the deferred body of a stream."""
        body = bytes(self.deferred[stream_id])
        self.remove(stream_id)
        return body

    def remove(self, stream_id: int) -> None:
        """Drop the deferred body of a stream, if it has one."""
        if self.deferred.pop(stream_id, None) is not None and self._credit < self._limits.connection_window >> 1:
            self._fill()

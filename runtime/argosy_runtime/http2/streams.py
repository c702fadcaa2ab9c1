"""One stream of a connection: the response's way out, and the credit for the request's way in."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from . import frames
from .application import Receiver
from .errors import ErrorCode
from .headers.prepared import PreparedResponse
from .output import Piece

if TYPE_CHECKING:
    from .connection import Connection

# Parts of larger bodies are sent as they are instead of being copied into one.
_JOIN_BELOW: Final = 1 << 16


class Stream:
    """A request's stream. Nothing here blocks: what windows do not let through waits, and `send` says so."""

    __slots__ = (
        "_connection",
        "_moved",
        "_output",
        "_pending",
        "_reserved",
        "_stalled_since",
        "_trailers",
        "_unreturned",
        "closed",
        "credit",
        "declared",
        "deferred",
        "id",
        "peer_ended",
        "receiver",
        "send_window",
        "started",
    )

    def __init__(self, connection: "Connection", stream_id: int, declared: int) -> None:
        output = connection.output
        self.id = stream_id
        self.receiver: Receiver | None = None
        """None once the stream is closed: the two know each other, and would else wait for the collector."""
        self.send_window = output.initial_window
        """Bytes of body that this side may send."""
        self.credit = connection.stream_window
        """Bytes of body that the client may send."""
        self.declared = declared
        """How many bytes of body are still to come; below 0 where the request did not say."""
        self.peer_ended = False
        self.started = False
        self.closed = False
        self.deferred: bytearray | None = None
        """What has come and waits in `Inbound`."""
        self._connection = connection
        self._output = output
        self._unreturned = 0
        self._pending: deque[Piece] | None = None
        self._reserved = 0
        self._trailers: bytes | None = None
        self._moved = True
        self._stalled_since = 0.0

    def respond(self, prepared: PreparedResponse, parts: Sequence[Piece], size: int) -> None:
        """A whole response, its body in parts of together `size` bytes. Does nothing on a closed stream."""
        output = self._output
        if self.started or self.closed or size > self.send_window or not output.lets_through(size):
            self.start(prepared.head)
            self.send(parts, size)
            self.end(prepared.trailers)
            return
        self.started = True
        pieces = output.pieces
        pieces.append(prepared.opening(self.id, size))
        pieces += parts
        pieces.append(prepared.closing(self.id))
        self._connection.answered(self)

    def start(self, block: bytes) -> None:
        """Send the response's header block, unless it is out or the stream is closed."""
        if not self.started and not self.closed:
            self.started = True
            self._output.write(frames.header_frames(self.id, block, 0, self._output.frame_size))

    def send(self, parts: Sequence[Piece], size: int) -> bool:
        """More of the body; False: the producer should wait for `Receiver.writable`."""
        if self.closed or self._trailers is not None:
            return True
        if self._output.is_overfull():
            self._connection.give_up(self)
            return True
        return self._add(parts, size)

    def reserve(self, size: int) -> bool:
        """Count `size` bytes as unsent before the part of the body they become is ready; False: no more is sent."""
        if self.closed or self._trailers is not None:
            return False
        if self._output.is_overfull():
            self._connection.give_up(self)
            return False
        self._reserved += size
        self._output.unsent += size
        return True

    def send_reserved(self, reserved: int, part: Piece) -> None:
        """Send the part that `reserved` bytes were counted for, and count its own."""
        if self.closed or self._trailers is not None:
            return
        self._release(reserved)
        self._add((part,), len(part))
        self._output.wake()  # What is deferred may have room now.

    def _release(self, size: int) -> None:
        self._reserved -= size
        self._output.unsent -= size

    def _add(self, parts: Sequence[Piece], size: int) -> bool:
        output = self._output
        if self._pending is None:
            self._pending = deque()
            output.waiting[self.id] = self
        output.unsent += size
        self._pending.extend(parts if size >= _JOIN_BELOW else (b"".join(parts),))
        while self.send_frame():
            pass
        if self.may_go_on():
            return True
        output.stalled[self.id] = self
        return False

    def end(self, trailers: bytes) -> None:
        """Send trailers behind what waits; nothing follows them. Alone they are a whole response."""
        if self.closed or self._trailers is not None:
            return
        self.started = True
        self._release(self._reserved)
        self._trailers = trailers
        if self._pending is None:
            self._send_trailers()

    def reset(self, code: ErrorCode) -> None:
        """Give the stream up; nothing is sent on it any more, and its receiver hears nothing."""
        if not self.closed:
            self._connection.drop(self, code)

    def consumed(self, size: int) -> None:
        """The receiver is done with `size` bytes; the client may send as many again."""
        if self.peer_ended or self.closed:
            return
        self._unreturned += size
        if self._unreturned >= self._connection.stream_window >> 1:
            self.credit += self._unreturned
            self._output.write(frames.window_update(self.id, self._unreturned))
            self._unreturned = 0

    def may_go_on(self) -> bool:
        """Return whether a producer may send more: nothing waits."""
        return self._pending is None and not self._output.is_full()

    def send_frame(self) -> bool:
        """Send one frame of what waits; whether there was room for it."""
        output, pending = self._output, self._pending
        if pending is None or output.paused:
            return False
        while pending and not len(pending[0]):
            pending.popleft()
        if not pending:
            self._sent_all()
            return False
        room = min(output.window, self.send_window, output.frame_size)
        if room > 0:
            self._send_piece(pending, room)
        return room > 0

    def _send_piece(self, pending: "deque[Piece]", room: int) -> None:
        piece = pending[0]
        if len(piece) > room:
            view = memoryview(piece)
            piece, pending[0] = view[:room], view[room:]
        else:
            pending.popleft()
        self.send_window -= len(piece)
        self._moved = True
        output = self._output
        output.window -= len(piece)
        output.unsent -= len(piece)
        output.write(frames.head(frames.DATA, 0, self.id, len(piece)))
        output.write(piece)
        self._connection.sent_data()

    def _sent_all(self) -> None:
        self._pending = None
        self._output.waiting.pop(self.id, None)
        if self._trailers is not None:
            self._send_trailers()

    def _send_trailers(self) -> None:
        trailers, output = self._trailers, self._output
        if trailers is not None:
            output.write(frames.header_frames(self.id, trailers, frames.END_STREAM, output.frame_size))
            self._connection.answered(self)

    def is_stalled(self, now: float, patience: float) -> bool:
        """Return whether nothing was sent for `patience` seconds, of calls one after the other."""
        if self._moved or self._output.paused:
            self._moved, self._stalled_since = False, now
        return now - self._stalled_since >= patience

    def close(self) -> Receiver | None:
        """Nothing more is sent; what waited is dropped. Returns the receiver, with which the stream is done."""
        self.closed = True
        self._release(self._reserved)
        if self._pending is not None:
            self._output.unsent -= sum([len(piece) for piece in self._pending])
            self._pending = None
        receiver, self.receiver = self.receiver, None
        return receiver

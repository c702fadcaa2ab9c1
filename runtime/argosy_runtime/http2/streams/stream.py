"""One stream of a connection: the response's way out, and the credit for the request's way in."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from argosy_runtime.http2 import frames
from argosy_runtime.http2.errors import ErrorCode
from argosy_runtime.http2.headers import PreparedResponse

from .output import Output, Piece

# Parts of larger bodies are sent as they are instead of being copied into one.
_JOIN_BELOW: Final = 1 << 16


class Receiver(Protocol):
    """One request as it comes in. Whatever it raises ends its stream, never its connection."""

    def received(self, data: bytes, ended: bool) -> None:
        """Take more of the body, b"" at times; `ended`: there is no more. `Stream.consumed` returns the credit."""

    def reset(self) -> None:
        """Stop: the peer has given the request up, or is gone. Nothing can be answered any more."""

    def writable(self) -> None:
        """Go on sending, after `Stream.send` returned False."""

    def conclude(self) -> None:
        """End the stream behind the answers that it owes, even if the peer may ask for more: the server ends."""

    def failed(self, error: Exception) -> None:
        """Answer after an error that this receiver raised. If it raises again, the stream is reset."""


class Stream:
    """A request's stream. Nothing here blocks: what windows do not let through waits, and `send` says so.

    `answered` is called when the response is complete, `dropped` when the stream is to be reset: with a code, and
    whether the receiver is to be reset, too.
    """

    __slots__ = (
        "_answered",
        "_credit_window",
        "_dropped",
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
        "id",
        "peer_ended",
        "receiver",
        "send_window",
        "started",
    )

    def __init__(
        self,
        output: Output,
        stream_id: int,
        window: int,
        declared: int,
        answered: Callable[["Stream"], None],
        dropped: Callable[["Stream", ErrorCode, bool], None],
    ) -> None:
        self.id = stream_id
        self.receiver: Receiver | None = None
        """None once the stream is closed: the two refer to each other, and would else wait for the collector."""
        self.send_window = output.initial_window
        """Bytes of body that this side may send."""
        self.credit = window
        """Bytes of body that the client may send."""
        self.declared = declared
        """Bytes of body that are still to come; below 0 where the request did not declare them."""
        self.peer_ended = False
        self.started = False
        self.closed = False
        self._answered = answered
        self._dropped = dropped
        self._output = output
        self._credit_window = window
        self._unreturned = 0
        self._pending: deque[Piece] | None = None
        self._reserved = 0
        self._trailers: bytes | None = None
        self._moved = True
        self._stalled_since = 0.0

    def respond(self, prepared: PreparedResponse, parts: Sequence[Piece], size: int) -> None:
        """Send a complete response, its body in parts of together `size` bytes. Does nothing on a closed stream."""
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
        self._answered(self)

    def start(self, block: bytes) -> None:
        """Send the response's header block, unless it is out or the stream is closed."""
        if not self.started and not self.closed:
            self.started = True
            self._output.write(frames.header_frames(self.id, block, 0, self._output.frame_size))

    def send(self, parts: Sequence[Piece], size: int) -> bool:
        """Send more of the body. Return False where the producer should wait for `Receiver.writable`."""
        return not self._takes_more() or self._add(parts, size)

    def reserve(self, size: int) -> bool:
        """Count `size` bytes as unsent before the part of the body they become is ready; False: no more is sent."""
        if not self._takes_more():
            return False
        self._reserved += size
        self._output.unsent += size
        return True

    def _takes_more(self) -> bool:
        """Return whether the body may go on. A stream whose client lets too much wait is reset."""
        if self.closed or self._trailers is not None:
            return False
        if self._output.is_overfull():
            self.give_up()
            return False
        return True

    def send_reserved(self, reserved: int, part: Piece) -> None:
        """Send the part that `reserved` bytes were counted for, and count its own."""
        if self.closed or self._trailers is not None:
            return
        self._release(reserved)
        self._add((part,), len(part))
        self._output.wake()  # Deferred bodies may go on now.

    def _release(self, size: int) -> None:
        self._reserved -= size
        self._output.unsent -= size

    def _add(self, parts: Sequence[Piece], size: int) -> bool:
        output = self._output
        if self._pending is None:
            self._pending = deque()
            output.blocked[self.id] = None
        output.unsent += size
        self._pending.extend(parts if size >= _JOIN_BELOW else (b"".join(parts),))
        while self.send_frame():
            pass
        if self.may_go_on():
            return True
        output.stalled[self.id] = None
        return False

    def end(self, trailers: bytes) -> None:
        """Send trailers behind what waits; nothing follows them. Alone they are a complete response."""
        if self.closed or self._trailers is not None:
            return
        self.started = True
        self._release(self._reserved)
        self._trailers = trailers
        if self._pending is None:
            self._send_trailers()

    def reset(self, code: ErrorCode) -> None:
        """Give the stream up; nothing is sent on it any more. Its receiver is not reset."""
        if not self.closed:
            self._dropped(self, code, False)

    def give_up(self) -> None:
        """Reset the stream of a client that makes no room for its answer. Its receiver is reset by the next `resume` of
        the connection.
        """
        self._dropped(self, ErrorCode.ENHANCE_YOUR_CALM, True)

    def consumed(self, size: int) -> None:
        """Let the client send as many bytes again as the receiver has taken."""
        if self.peer_ended or self.closed:
            return
        self._unreturned += size
        if self._unreturned >= self._credit_window >> 1:
            self.credit += self._unreturned
            self._output.write(frames.window_update(self.id, self._unreturned))
            self._unreturned = 0

    def may_go_on(self) -> bool:
        """Return whether a producer may send more: nothing waits."""
        return self._pending is None and not self._output.is_full()

    def send_frame(self) -> bool:
        """Send one frame of what waits. Return whether there was room for it."""
        output, pending = self._output, self._pending
        if pending is None or output.paused:
            return False
        while pending and not len(pending[0]):
            pending.popleft()
        if not pending:
            self._sent_all()
            return False
        size = min(output.window, self.send_window, output.frame_size)
        if size > 0:
            self._send_piece(pending, size)
        return size > 0

    def _send_piece(self, pending: "deque[Piece]", size: int) -> None:
        piece = pending[0]
        if len(piece) > size:
            view = memoryview(piece)
            piece, pending[0] = view[:size], view[size:]
        else:
            pending.popleft()
        self.send_window -= len(piece)
        self._moved = True
        output = self._output
        output.window -= len(piece)
        output.unsent -= len(piece)
        output.write(frames.head(frames.DATA, 0, self.id, len(piece)))
        output.write(piece)
        output.conduct.sent_data()

    def _sent_all(self) -> None:
        self._pending = None
        self._output.blocked.pop(self.id, None)
        if self._trailers is not None:
            self._send_trailers()

    def _send_trailers(self) -> None:
        trailers, output = self._trailers, self._output
        if trailers is not None:
            output.write(frames.header_frames(self.id, trailers, frames.END_STREAM, output.frame_size))
            self._answered(self)

    def is_stalled(self, now: float, patience: float) -> bool:
        """Return whether nothing was sent for `patience` seconds, of calls one after the other."""
        if self._moved or self._output.paused:
            self._moved, self._stalled_since = False, now
        return now - self._stalled_since >= patience

    def close(self) -> Receiver | None:
        """Drop what waits and send nothing more. Return the receiver, which the stream no longer refers to."""
        self.closed = True
        self._release(self._reserved)
        if self._pending is not None:
            self._output.unsent -= sum([len(piece) for piece in self._pending])
            self._pending = None
        receiver, self.receiver = self.receiver, None
        return receiver

"""What a connection has to send: the pieces, and the windows that let them through."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from . import frames

if TYPE_CHECKING:
    from .streams import Stream

Piece = bytes | memoryview

# Pieces beyond which producers of streams are told to wait for the next write.
_FULL: Final = 256


class Output:
    """Pieces for one write, and the streams that wait for a window or for the transport.

    `wake` is called once for all that is written until the next `take`.
    """

    __slots__ = (
        "_awake",
        "_unsent_limit",
        "_wake",
        "frame_size",
        "initial_window",
        "paused",
        "pieces",
        "stalled",
        "unsent",
        "waiting",
        "window",
    )

    def __init__(self, wake: Callable[[], None], unsent_limit: int) -> None:
        self.pieces: list[Piece] = []
        self.paused = False
        """The transport takes no more for now."""
        self.window = frames.DEFAULT_WINDOW
        """Bytes of bodies that the connection may send."""
        self.initial_window = frames.DEFAULT_WINDOW
        """The same of a new stream."""
        self.frame_size = frames.DEFAULT_FRAME_SIZE
        self.waiting: dict[int, Stream] = {}
        """Streams with something to send that no window lets through."""
        self.stalled: dict[int, Stream] = {}
        """Streams whose producers were told to wait."""
        self.unsent = 0
        """Bytes of bodies in all streams that no window, or not the transport, lets through."""
        self._unsent_limit = unsent_limit
        self._wake = wake
        self._awake = False

    def write(self, piece: Piece) -> None:
        """Send this with the next write."""
        self.pieces.append(piece)
        if not self._awake:
            self.wake()

    def wake(self) -> None:
        """Have somebody `take` soon."""
        if not self._awake:
            self._awake = True
            self._wake()

    def hold(self) -> None:
        """Somebody is going to `take` anyway."""
        self._awake = True

    def take(self) -> list[Piece]:
        """Take what is to be sent now."""
        self._awake = False
        pieces, self.pieces = self.pieces, []
        return pieces

    def lets_through(self, size: int) -> bool:
        """Return whether a body of this size may go out in one frame now; if so it is taken from the connection's
        window.
        """
        if size > self.window or size > self.frame_size or self.paused:
            return False
        self.window -= size
        return True

    def is_full(self) -> bool:
        """Return whether producers should wait for the next write."""
        return self.paused or len(self.pieces) >= _FULL

    def is_overfull(self) -> bool:
        """Return whether so much waits that nothing may be added."""
        return self.unsent > self._unsent_limit

    def unblock(self) -> None:
        """Send of what waits as much as windows and the transport let through, a frame of each stream in turn."""
        progress = bool(self.waiting)
        while progress and not self.paused:
            progress = False
            for stream in tuple(self.waiting.values()):
                progress |= stream.send_frame()

    def remove(self, stream_id: int) -> None:
        """A stream is closed."""
        if self.waiting:
            self.waiting.pop(stream_id, None)
        if self.stalled:
            self.stalled.pop(stream_id, None)

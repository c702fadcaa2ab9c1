"""The output of a connection: waiting bytes, and the windows that let them through."""

from collections.abc import Callable
from typing import Final

from argosy_runtime.http2 import frames
from argosy_runtime.http2.conduct import Conduct

Piece = bytes | memoryview

# Pieces beyond which producers of streams have to wait for the next write.
_FULL: Final = 256


class Output:
    """Pieces for one write, with the state that all streams share.

    `wake` is called once for everything that is written until the next `take`.
    """

    __slots__ = (
        "_awake",
        "_unsent_limit",
        "_wake",
        "blocked",
        "conduct",
        "frame_size",
        "initial_window",
        "paused",
        "pieces",
        "stalled",
        "unsent",
        "window",
    )

    def __init__(self, wake: Callable[[], None], unsent_limit: int, conduct: Conduct) -> None:
        self.conduct = conduct
        self.pieces: list[Piece] = []
        self.paused = False
        """Whether the transport takes no more for now."""
        self.window = frames.DEFAULT_WINDOW
        """Bytes of bodies that the connection may send."""
        self.initial_window = frames.DEFAULT_WINDOW
        """The same of a new stream."""
        self.frame_size = frames.DEFAULT_FRAME_SIZE
        self.blocked: dict[int, None] = {}
        """Ids of the streams with something to send that no window lets through."""
        self.stalled: dict[int, None] = {}
        """Ids of the streams whose producers have to wait."""
        self.unsent = 0
        """Bytes of bodies, of all streams, that a window or the transport does not let through."""
        self._unsent_limit = unsent_limit
        self._wake = wake
        self._awake = False

    def write(self, piece: Piece) -> None:
        """Send this with the next write."""
        self.pieces.append(piece)
        if not self._awake:
            self.wake()

    def wake(self) -> None:
        """Have the driver `take` soon."""
        if not self._awake:
            self._awake = True
            self._wake()

    def hold(self) -> None:
        """Call no `wake` until the next `take`, which the driver is about to call."""
        self._awake = True

    def take(self) -> list[Piece]:
        """Return the data to send now, and remove it."""
        self._awake = False
        pieces, self.pieces = self.pieces, []
        return pieces

    def lets_through(self, size: int) -> bool:
        """Take `size` bytes from the connection's window and return True, if one frame may carry them now."""
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

    def remove(self, stream_id: int) -> None:
        """Forget a stream that is closed."""
        if self.blocked:
            self.blocked.pop(stream_id, None)
        if self.stalled:
            self.stalled.pop(stream_id, None)

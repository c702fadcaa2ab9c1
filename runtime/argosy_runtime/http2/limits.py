"""What one peer may ask of this side, and the account of what it did in vain."""

from dataclasses import dataclass

from .errors import too_much


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes, times in seconds. The windows are what a peer may send ahead of being read; a client that has not
    heard of them yet takes them for 65,535, so smaller ones may surprise it.

    `wasted_frames` is how many frames without effect (resets, pings, settings, priorities, empty DATA, updates of
    windows) are taken in `wasted_period` beyond those that answered streams pay for.

    `unsent_pause`: bytes of answers that wait for the peer to make room, beyond which its requests wait too.
    `unsent_limit`: as many, beyond which further answers to the requests before those are given up.
    """

    stream_window: int = 4 << 20
    connection_window: int = 64 << 20
    frame_size: int = 4 << 20
    streams: int = 4096
    header_block: int = 64 << 10
    header_frames: int = 64
    header_list: int = 64 << 10
    cached_blocks: int = 256
    cached_block_size: int = 1024
    wasted_frames: int = 1000
    wasted_period: float = 10.0
    unsent_pause: int = 64 << 20
    unsent_limit: int = 512 << 20


class Waste:
    """How much a peer has had done in vain; streams that are answered make up for it."""

    __slots__ = ("_allowed", "_period", "_since", "spent")

    def __init__(self, limits: Limits, now: float) -> None:
        self._allowed = limits.wasted_frames
        self._period = limits.wasted_period
        self._since = now
        self.spent = 0

    def add(self, now: float) -> None:
        """Count one frame. Raises PeerError beyond what is tolerated."""
        self.spent += 1
        if self.spent <= self._allowed:
            return
        if now - self._since <= self._period:
            raise too_much("too many frames without effect")
        self.spent, self._since = 1, now

    def repay(self, frames: int) -> None:
        """Something useful was done, for which a peer may need so many frames."""
        if self.spent:
            self.spent = max(0, self.spent - frames)

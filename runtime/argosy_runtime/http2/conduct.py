"""The limits of what a client may ask of this side, and the count of its frames without effect."""

from dataclasses import dataclass
from typing import Final

from .errors import too_much
from .keepalive import NEVER, KeepAliveRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on a peer. Sizes in bytes, times in seconds. The windows bound the data that is sent before it is read. A
    client assumes 65,535 until it has read our settings, so it may exceed smaller windows.

    `wasted_frames`: the frames without effect (resets, pings, settings, priorities, empty DATA, window updates) that
    are accepted in `wasted_period`, in addition to a number for each answered stream.

    `unsent_pause`: bytes of unsent responses beyond which the peer's requests wait. `unsent_limit`: bytes beyond which
    further responses to earlier requests are dropped.
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


# What a client has reason to send for each DATA frame that it reads: updates of two windows, a ping.
_FRAMES_FOR_DATA: Final = 3
# Seconds between two PINGs of a client that has no requests and no permission to send them (as gRPC has it).
_IDLE_PING_INTERVAL: Final = 7200.0


class Waste:
    """The number of frames without effect. Responses that are sent lower it."""

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
        """Subtract the frames that a client may need for something useful."""
        if self.spent:
            self.spent = max(0, self.spent - frames)


class PingStrikes:
    """The number of PINGs that came sooner than allowed while nothing was sent to the client."""

    __slots__ = ("_last", "_rules", "_strikes")

    def __init__(self, rules: KeepAliveRules) -> None:
        self._rules = rules
        self._last = -NEVER
        self._strikes = 0

    def forgive(self) -> None:
        """Reset the count, because something was sent that a PING may answer."""
        self._strikes = 0
        self._last = -NEVER

    def is_too_many(self, now: float, has_streams: bool) -> bool:
        """Count one PING. Return whether it is one too many."""
        rules = self._rules
        allowed = has_streams or rules.permit_without_calls
        interval = rules.min_ping_interval if allowed else max(rules.min_ping_interval, _IDLE_PING_INTERVAL)
        too_soon = now < self._last + interval
        self._last = now
        if too_soon and rules.max_ping_strikes:
            self._strikes += 1
        return self._strikes > rules.max_ping_strikes > 0


class Conduct:
    """The conduct of one client. `now`: when the bytes came that are being read."""

    __slots__ = ("_pings", "_waste", "now")

    def __init__(self, limits: Limits, rules: KeepAliveRules, now: float) -> None:
        self.now = now
        self._waste = Waste(limits, now)
        self._pings = PingStrikes(rules)

    def count_waste(self) -> None:
        """Count one frame without effect. Raises PeerError beyond what is tolerated."""
        self._waste.add(self.now)

    def count_ping(self, has_streams: bool) -> None:
        """Count one PING. Raises PeerError beyond what is tolerated."""
        if self._pings.is_too_many(self.now, has_streams):
            raise too_much("too_many_pings")

    def sent_data(self) -> None:
        """Note that the client was sent something, for which it has reason to send something back."""
        self._waste.repay(_FRAMES_FOR_DATA)
        self._pings.forgive()

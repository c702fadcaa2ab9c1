"""What one peer may ask of this side."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes, times in seconds. The windows are what a peer may send before it is read. A client takes them for
    65,535 until it has read our settings, so it may exceed smaller ones.

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

"""The frames that carry neither heads nor bodies: settings, pings, resets, windows, priorities, ends."""

from collections.abc import Callable
from typing import Final

from . import frames
from .conduct import Limits
from .errors import ErrorCode, flow_control_error, frame_size_error, protocol_error
from .streams.table import Streams

Handler = Callable[[Streams, int, int, bytes], None]
"""Of the connection's streams, the frame's flags, its stream and its payload. Raises PeerError."""


def greeting(limits: Limits) -> bytes:
    """Return the frames that say what this side allows."""
    settings = (
        (frames.MAX_CONCURRENT_STREAMS, limits.streams),
        (frames.INITIAL_WINDOW_SIZE, limits.stream_window),
        (frames.MAX_FRAME_SIZE_SETTING, limits.frame_size),
        (frames.MAX_HEADER_LIST_SIZE, limits.header_list),
    )
    more = limits.connection_window - frames.DEFAULT_WINDOW
    return frames.settings(settings) + frames.window_update(0, more)


def priority(streams: Streams, flags: int, stream_id: int, payload: bytes) -> None:
    """Check and count a priority, which has no effect (RFC 9113, 5.3.2)."""
    if not stream_id:
        raise protocol_error("PRIORITY of the connection")
    frames.check_priority(stream_id, payload)
    streams.conduct.count_waste()


def rst_stream(streams: Streams, flags: int, stream_id: int, payload: bytes) -> None:
    """Close a stream that the client has given up."""
    if len(payload) != 4:
        raise frame_size_error("RST_STREAM of a size other than 4")
    streams.check_opened(stream_id, "RST_STREAM")
    streams.conduct.count_waste()
    streams.reset_by_client(stream_id)


def settings(streams: Streams, flags: int, stream_id: int, payload: bytes) -> None:
    """Apply what the client allows, and acknowledge it."""
    if stream_id:
        raise protocol_error("SETTINGS of a stream")
    if len(payload) % 6 or (flags & frames.ACK and payload):
        raise frame_size_error("SETTINGS of a bad size")
    if flags & frames.ACK:
        return
    streams.conduct.count_waste()
    for key, value in frames.read_settings(payload):
        _setting(streams, key, value)
    streams.output.write(frames.frame(frames.SETTINGS, frames.ACK, 0, b""))
    streams.unblock()


def _setting(streams: Streams, key: int, value: int) -> None:
    if key == frames.INITIAL_WINDOW_SIZE:
        _change_windows(streams, value)
    elif key == frames.MAX_FRAME_SIZE_SETTING:
        if not frames.DEFAULT_FRAME_SIZE <= value <= frames.MAX_FRAME_SIZE:
            raise protocol_error("a bad MAX_FRAME_SIZE")
        streams.output.frame_size = value
    elif key == frames.ENABLE_PUSH and value > 1:
        raise protocol_error("a bad ENABLE_PUSH")


def _change_windows(streams: Streams, value: int) -> None:
    opened = streams.opened.values()
    change = value - streams.output.initial_window
    largest = max((stream.send_window for stream in opened), default=0)
    if value > frames.MAX_WINDOW or largest + change > frames.MAX_WINDOW:
        raise flow_control_error("a bad INITIAL_WINDOW_SIZE")
    streams.output.initial_window = value
    for stream in opened:
        stream.send_window += change


def ping(streams: Streams, flags: int, stream_id: int, payload: bytes) -> None:
    """Answer a PING. An answer to one of ours says that the client has read everything that was sent before it."""
    if stream_id:
        raise protocol_error("PING of a stream")
    if len(payload) != 8:
        raise frame_size_error("PING of a size other than 8")
    if flags & frames.ACK:
        if streams.shutdown.is_acknowledged(payload):
            streams.shutdown.finish(not streams)
        return
    streams.conduct.count_waste()
    streams.output.write(frames.ping(payload, frames.ACK))
    streams.conduct.count_ping(bool(streams))


def goaway(streams: Streams, flags: int, stream_id: int, payload: bytes) -> None:
    """Close once the requests are answered: the client will send no more of them."""
    if stream_id:
        raise protocol_error("GOAWAY of a stream")
    if len(payload) < 8:
        raise frame_size_error("GOAWAY cut short")
    streams.shutdown.finish(not streams)


def window_update(streams: Streams, flags: int, stream_id: int, payload: bytes) -> None:
    """Widen the window of a stream, or of the connection."""
    if len(payload) != 4:
        raise frame_size_error("WINDOW_UPDATE of a size other than 4")
    streams.conduct.count_waste()
    increment = frames.read_u32(payload) & frames.MAX_WINDOW
    if stream_id:
        _widen_stream(streams, stream_id, increment)
        return
    output = streams.output
    output.window += increment
    if not increment:
        raise protocol_error("WINDOW_UPDATE by nothing")
    if output.window > frames.MAX_WINDOW:
        raise flow_control_error("a window beyond 2^31-1")
    streams.unblock()


def _widen_stream(streams: Streams, stream_id: int, increment: int) -> None:
    streams.check_opened(stream_id, "WINDOW_UPDATE")
    stream = streams.opened.get(stream_id)
    if stream is None:
        return
    stream.send_window += increment
    if not increment:
        streams.break_off(stream, ErrorCode.PROTOCOL_ERROR)
    elif stream.send_window > frames.MAX_WINDOW:
        streams.break_off(stream, ErrorCode.FLOW_CONTROL_ERROR)
    else:
        streams.unblock()


def push_promise(streams: Streams, flags: int, stream_id: int, payload: bytes) -> None:
    """Refuse the frame: only servers may send it."""
    raise protocol_error("a client cannot push")


HANDLERS: Final[dict[int, Handler]] = {
    frames.PRIORITY: priority,
    frames.RST_STREAM: rst_stream,
    frames.SETTINGS: settings,
    frames.PUSH_PROMISE: push_promise,
    frames.PING: ping,
    frames.GOAWAY: goaway,
    frames.WINDOW_UPDATE: window_update,
}

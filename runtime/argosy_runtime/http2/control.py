"""The frames that carry neither heads nor bodies: settings, pings, resets, windows, priorities, ends."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from . import frames
from .errors import ErrorCode, flow_control_error, frame_size_error, protocol_error, too_much
from .limits import Limits

if TYPE_CHECKING:
    from .connection import Connection

Handler = Callable[["Connection", int, int, bytes], None]
"""Of the connection, the frame's flags, its stream and its payload. Raises PeerError."""


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


def priority(connection: "Connection", flags: int, stream_id: int, payload: bytes) -> None:
    """Checked and counted; priorities have no effect (RFC 9113, 5.3.2)."""
    if not stream_id:
        raise protocol_error("PRIORITY of the connection")
    frames.check_priority(stream_id, payload)
    connection.count_waste()


def rst_stream(connection: "Connection", flags: int, stream_id: int, payload: bytes) -> None:
    """The client gives a request up."""
    if len(payload) != 4:
        raise frame_size_error("RST_STREAM of a size other than 4")
    connection.check_opened(stream_id, "RST_STREAM")
    connection.count_waste()
    connection.given_up(stream_id)


def settings(connection: "Connection", flags: int, stream_id: int, payload: bytes) -> None:
    """What the client allows; takes effect at once and is acknowledged."""
    if stream_id:
        raise protocol_error("SETTINGS of a stream")
    if len(payload) % 6 or (flags & frames.ACK and payload):
        raise frame_size_error("SETTINGS of a bad size")
    if flags & frames.ACK:
        return
    connection.count_waste()
    for key, value in frames.read_settings(payload):
        _setting(connection, key, value)
    connection.output.write(frames.frame(frames.SETTINGS, frames.ACK, 0, b""))
    connection.output.unblock()


def _setting(connection: "Connection", key: int, value: int) -> None:
    if key == frames.INITIAL_WINDOW_SIZE:
        _change_windows(connection, value)
    elif key == frames.MAX_FRAME_SIZE_SETTING:
        if not frames.DEFAULT_FRAME_SIZE <= value <= frames.MAX_FRAME_SIZE:
            raise protocol_error("a bad MAX_FRAME_SIZE")
        connection.output.frame_size = value
    elif key == frames.ENABLE_PUSH and value > 1:
        raise protocol_error("a bad ENABLE_PUSH")


def _change_windows(connection: "Connection", value: int) -> None:
    streams = connection.streams.values()
    change = value - connection.output.initial_window
    largest = max((stream.send_window for stream in streams), default=0)
    if value > frames.MAX_WINDOW or largest + change > frames.MAX_WINDOW:
        raise flow_control_error("a bad INITIAL_WINDOW_SIZE")
    connection.output.initial_window = value
    for stream in streams:
        stream.send_window += change


def ping(connection: "Connection", flags: int, stream_id: int, payload: bytes) -> None:
    """Answered; an answer to one of ours says that the client has read all that was sent before it."""
    if stream_id:
        raise protocol_error("PING of a stream")
    if len(payload) != 8:
        raise frame_size_error("PING of a size other than 8")
    if flags & frames.ACK:
        connection.pinged(payload)
        return
    connection.count_waste()
    connection.output.write(frames.ping(payload, frames.ACK))
    if connection.pings.is_too_many(connection.now, bool(connection.streams)):
        raise too_much("too_many_pings")


def goaway(connection: "Connection", flags: int, stream_id: int, payload: bytes) -> None:
    """The client will ask no more."""
    if stream_id:
        raise protocol_error("GOAWAY of a stream")
    if len(payload) < 8:
        raise frame_size_error("GOAWAY cut short")
    connection.finish()


def window_update(connection: "Connection", flags: int, stream_id: int, payload: bytes) -> None:
    """The client takes more: of a stream, or of all together."""
    if len(payload) != 4:
        raise frame_size_error("WINDOW_UPDATE of a size other than 4")
    connection.count_waste()
    increment = frames.read_u32(payload) & frames.MAX_WINDOW
    if stream_id:
        _widen_stream(connection, stream_id, increment)
        return
    output = connection.output
    output.window += increment
    if not increment:
        raise protocol_error("WINDOW_UPDATE by nothing")
    if output.window > frames.MAX_WINDOW:
        raise flow_control_error("a window beyond 2^31-1")
    output.unblock()


def _widen_stream(connection: "Connection", stream_id: int, increment: int) -> None:
    connection.check_opened(stream_id, "WINDOW_UPDATE")
    stream = connection.streams.get(stream_id)
    if stream is None:
        return
    stream.send_window += increment
    if not increment:
        connection.break_off(stream, ErrorCode.PROTOCOL_ERROR)
    elif stream.send_window > frames.MAX_WINDOW:
        connection.break_off(stream, ErrorCode.FLOW_CONTROL_ERROR)
    else:
        connection.output.unblock()


def push_promise(connection: "Connection", flags: int, stream_id: int, payload: bytes) -> None:
    """Only servers may send it."""
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

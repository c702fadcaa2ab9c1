"""Violations of the protocol: frames that end the connection, and requests that end alone."""

import pytest

from argosy_runtime.http2 import ErrorCode, KeepAliveRules, frames
from argosy_runtime.http2.hpack.encoder import encode

from .heard import COMPLETE, HEADERS, begun, block, goaway_code
from .playing import Play, head


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frames.frame(HEADERS, COMPLETE, 2, block()), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(HEADERS, COMPLETE, 0, block()), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.DATA, 0, 0, b"x"), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.DATA, 0, 1, b"x"), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.DATA, frames.PADDED, 1, b"\x05x"), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.RST_STREAM, 0, 1, bytes(4)), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.RST_STREAM, 0, 1, bytes(3)), ErrorCode.FRAME_SIZE_ERROR),
        (frames.frame(frames.SETTINGS, 0, 1, b""), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.SETTINGS, 0, 0, bytes(5)), ErrorCode.FRAME_SIZE_ERROR),
        (frames.frame(frames.SETTINGS, frames.ACK, 0, bytes(6)), ErrorCode.FRAME_SIZE_ERROR),
        (frames.settings([(frames.INITIAL_WINDOW_SIZE, 1 << 31)]), ErrorCode.FLOW_CONTROL_ERROR),
        (frames.settings([(frames.MAX_FRAME_SIZE_SETTING, 100)]), ErrorCode.PROTOCOL_ERROR),
        (frames.settings([(frames.ENABLE_PUSH, 2)]), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.PING, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.PING, 0, 0, bytes(7)), ErrorCode.FRAME_SIZE_ERROR),
        (frames.frame(frames.GOAWAY, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.GOAWAY, 0, 0, bytes(7)), ErrorCode.FRAME_SIZE_ERROR),
        (frames.window_update(0, 0), ErrorCode.PROTOCOL_ERROR),
        (frames.window_update(0, (1 << 31) - 1), ErrorCode.FLOW_CONTROL_ERROR),
        (frames.window_update(1, 5), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.WINDOW_UPDATE, 0, 0, bytes(3)), ErrorCode.FRAME_SIZE_ERROR),
        (frames.frame(frames.PRIORITY, 0, 0, bytes(5)), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.PRIORITY, 0, 1, bytes(4)), ErrorCode.FRAME_SIZE_ERROR),
        (frames.frame(frames.PRIORITY, 0, 1, b"\0\0\0\x01\0"), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.PUSH_PROMISE, 0, 1, bytes(4)), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(frames.CONTINUATION, 0, 1, b""), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(HEADERS, 0, 1, b"") + frames.ping(bytes(8)), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(HEADERS, 0, 1, b"") + frames.frame(frames.DATA, 0, 1, b""), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(HEADERS, 0, 1, b"") + frames.frame(HEADERS, 0, 3, b""), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(HEADERS, 0, 1, b"") + frames.frame(frames.CONTINUATION, 0, 3, b""), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(HEADERS, COMPLETE, 1, b"\xff"), ErrorCode.COMPRESSION_ERROR),
        (frames.frame(HEADERS, COMPLETE, 1, b"\x82" * 70_000), ErrorCode.ENHANCE_YOUR_CALM),
        (
            frames.frame(HEADERS, COMPLETE, 5, block()) + frames.frame(HEADERS, COMPLETE, 3, block()),
            ErrorCode.STREAM_CLOSED,
        ),
        (frames.head(frames.DATA, 0, 1, (4 << 20) + 1), ErrorCode.FRAME_SIZE_ERROR),
        (
            frames.frame(HEADERS, frames.END_HEADERS, 1, block())
            + frames.frame(frames.DATA, frames.END_STREAM, 1, b"")
            + frames.frame(frames.DATA, 0, 1, b"x"),
            ErrorCode.STREAM_CLOSED,
        ),
    ],
)
def test_what_ends_the_connection(sent: bytes, code: ErrorCode) -> None:
    play = begun()
    play.feed(sent)
    assert goaway_code(play) == code
    assert play.server.closing


@pytest.mark.parametrize(
    "greeting",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nXX", frames.PREFACE + frames.ping(bytes(8))],
)
def test_what_is_no_http2_client_is_answered_so(greeting: bytes) -> None:
    play = Play()
    play.feed(greeting)
    assert goaway_code(play) == ErrorCode.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        ([(b":method", b"POST"), (b":scheme", b"http")], None),
        ([(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"")], None),
        ([(b":method", b"POST"), (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/echo")], None),
        ([(b":method", b"POST"), (b"a", b"b"), (b":scheme", b"http"), (b":path", b"/echo")], None),
        ([(b":method", b"POST"), (b":status", b"200"), (b":scheme", b"http"), (b":path", b"/echo")], None),
        ([(b"connection", b"close")], None),
        ([(b"te", b"gzip")], None),
        ([(b"X-Upper", b"1")], None),
        ([(b"a b", b"1")], None),
        ([(b"a", b"1\r\nb: 2")], None),
        ([(b"content-length", b"one")], None),
        ([(b"content-length", b"1"), (b"content-length", b"2")], None),
        ([(b"content-length", b"3" * 5000)], None),
        ([(b"content-length", b"3")], b"four"),
        ([(b"content-length", b"3")], b"2b"),
    ],
)  # fmt: skip
def test_a_malformed_request_ends_alone(fields: list[tuple[bytes, bytes]], data: bytes | None) -> None:
    play = begun()
    full = fields if fields[0][0].startswith(b":") else [*((n.encode(), v.encode()) for n, v in head("/echo")), *fields]
    play.feed(frames.frame(HEADERS, frames.END_HEADERS, 1, encode(full)))
    if data is not None:
        play.feed(frames.frame(frames.DATA, frames.END_STREAM, 1, data))
    assert frames.rst_stream(1, ErrorCode.PROTOCOL_ERROR) in play.output()
    play.client.get_next_available_stream_id()
    play.feed(frames.frame(HEADERS, frames.END_HEADERS, 3, block()) + frames.frame(frames.DATA, 1, 3, b"hello"))
    assert b"hello" in play.output()


def test_pings_sooner_than_allowed_end_the_connection() -> None:
    play = begun(rules=KeepAliveRules(min_ping_interval=300.0, max_ping_strikes=2))
    for _ in range(2):
        play.ask(body=b"x")
        play.feed(frames.ping(bytes(8)))
        play.carry()
    for _ in range(3):
        assert goaway_code(play) is None
        play.feed(frames.ping(bytes(8)))
    assert goaway_code(play) is None
    play.feed(frames.ping(bytes(8)))
    assert goaway_code(play) == ErrorCode.ENHANCE_YOUR_CALM
    assert b"too_many_pings" in play.sent

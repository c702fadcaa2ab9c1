"""The connection's rules, one by one, with hyper-h2 as the client or frames written by hand."""

from typing import Any

import pytest
from h2 import events
from h2.settings import SettingCodes

from argosy_runtime.http2 import ErrorCode, KeepAliveRules, Limits, frames
from argosy_runtime.http2.hpack.encoder import encode

from .playing import Play, Streaming, head


def of(kind: type[Any], heard: list[Any]) -> list[Any]:
    return [event for event in heard if isinstance(event, kind)]


def body(heard: list[Any], stream_id: int) -> bytes:
    return b"".join(event.data for event in of(events.DataReceived, heard) if event.stream_id == stream_id)


def block(path: str = "/echo", *more: tuple[str, str]) -> bytes:
    return encode([(name.encode(), value.encode()) for name, value in head(path, *more)])


def goaway_code(play: Play) -> int | None:
    """The code of the GOAWAY that the server has sent; None for none."""
    data = bytes(play.sent + play.output())
    position = 0
    while position < len(data):
        kind, _, _ = frames.read_head(data, position)
        if kind & 0xFF == frames.GOAWAY:
            return frames.read_u32(data, position + frames.HEAD_SIZE + 4)
        position += frames.HEAD_SIZE + (kind >> 8)
    return None


def begun(**options: Any) -> Play:
    play = Play(**options)
    play.exchange()
    return play


def test_a_request_is_answered() -> None:
    play = begun()
    stream_id = play.ask(body=b"hello")
    heard = play.exchange()
    assert body(heard, stream_id) == b"hello"
    assert dict(of(events.TrailersReceived, heard)[0].headers)[b"status"] == b"0"
    assert not play.server.streams


def test_equal_heads_are_read_once_while_the_table_stands() -> None:
    play = begun()
    for _ in range(4):
        play.ask(body=b"x")
        play.exchange()
    # The client's first block fills the table, its second is the first that stays true.
    assert len(play.application.heads) == 2
    assert len(play.application.opened) == 4
    play.ask("/echo", b"x", ("x-new", "enters the table"))
    play.exchange()
    play.ask(body=b"x")
    play.exchange()
    assert len(play.application.heads) == 4


def test_answers_of_one_pass_leave_together() -> None:
    play = begun(waits=True)
    for _ in range(3):
        play.ask(body=b"x")
    play.exchange()
    wakes = play.wakes
    for receiver in play.application.due:
        receiver.answer()
    assert play.wakes == wakes + 1
    heard = play.exchange()
    assert len(of(events.TrailersReceived, heard)) == 3


def test_a_response_larger_than_the_windows_goes_out_as_they_open() -> None:
    play = Play()
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1000})
    play.exchange()
    stream_id = play.ask(body=bytes(range(250)) * 20)
    heard = play.exchange()
    assert len(body(heard, stream_id)) == 1000
    assert not of(events.TrailersReceived, heard)
    play.client.increment_flow_control_window(3000, stream_id)
    heard += play.exchange()
    assert len(body(heard, stream_id)) == 4000
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 2000})
    heard += play.exchange()
    assert body(heard, stream_id) == bytes(range(250)) * 20
    assert of(events.TrailersReceived, heard)


def test_streams_that_wait_share_the_connections_window() -> None:
    play = Play()
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1 << 20})
    play.exchange()
    streams = [play.ask(body=bytes(100_000)) for _ in range(3)]
    heard = play.exchange()
    assert {stream_id for stream_id in streams if body(heard, stream_id)} != set(streams)
    play.client.increment_flow_control_window(100_000)
    heard += play.exchange()
    assert all(body(heard, stream_id) for stream_id in streams)


def test_nothing_is_sent_while_the_transport_takes_no_more() -> None:
    play = begun()
    play.server.output.paused = True
    stream_id = play.ask(body=b"hello")
    heard = play.exchange()
    assert not body(heard, stream_id)
    play.server.output.paused = False
    play.server.resume()
    assert body(play.exchange(), stream_id) == b"hello"


def test_a_producer_is_told_to_wait_and_when_to_go_on() -> None:
    play = Play()
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1000})
    play.exchange()
    stream_id = play.ask("/stream", None)
    for _ in range(3):
        play.client.send_data(stream_id, bytes(900))
    play.exchange()
    receiver = play.application.opened[0]
    assert isinstance(receiver, Streaming)
    assert [len(piece) for piece in receiver.held] == [900]
    play.client.increment_flow_control_window(10_000, stream_id)
    heard = play.exchange()
    assert not receiver.held
    assert len(body(heard + play.events, stream_id)) >= 2700


def test_credit_comes_back_only_as_the_receiver_takes_data() -> None:
    play = begun(limits=Limits(stream_window=1 << 16))
    stream_id = play.ask("/stream", None)
    play.server.output.paused = True
    window = play.client.local_flow_control_window(stream_id)
    while play.client.local_flow_control_window(stream_id) >= 10_000:
        play.client.send_data(stream_id, bytes(10_000))
        play.exchange()
    assert window - play.client.local_flow_control_window(stream_id) == 60_000
    play.server.output.paused = False
    for _ in range(4):
        play.server.resume()
        play.exchange()
        play.client.increment_flow_control_window(60_000)
        play.client.increment_flow_control_window(60_000, stream_id)
    assert play.client.local_flow_control_window(stream_id) > 40_000


def test_padding_counts_for_windows_and_is_given_back() -> None:
    play = begun(limits=Limits(stream_window=2000))
    stream_id = play.ask(body=None)
    for _ in range(40):
        play.client.send_data(stream_id, b"x", pad_length=200)
        play.exchange()
    play.client.end_stream(stream_id)
    assert body(play.exchange(), stream_id) == b"x" * 40


def test_an_exception_ends_its_stream_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    play = begun()
    bad, worse, good = play.ask("/raise", b"x"), play.ask("/speechless", b"x"), play.ask(body=b"hello")
    heard = play.exchange()
    assert body(heard, good) == b"hello"
    assert dict(of(events.ResponseReceived, heard)[0].headers)[b":status"] == b"500"
    assert [event.stream_id for event in of(events.StreamReset, heard)] == [worse]
    assert isinstance(play.application.opened[0].errors[0], ValueError)
    assert [record.exc_info is not None for record in caplog.records] == [True, True]
    assert bad


def test_a_reset_reaches_the_receiver_once() -> None:
    play = begun(waits=True)
    stream_id = play.ask(body=b"x")
    play.exchange()
    play.client.reset_stream(stream_id)
    play.exchange()
    assert play.application.opened[0].resets == 1
    play.application.due[0].answer()
    play.server.lose()
    assert play.application.opened[0].resets == 1
    assert not play.exchange()


def test_a_lost_connection_resets_its_requests() -> None:
    play = begun(waits=True)
    play.ask(body=b"x")
    play.exchange()
    play.server.lose()
    assert play.application.opened[0].resets == 1


def test_an_early_answer_asks_the_client_to_stop_and_takes_what_still_comes() -> None:
    play = begun()
    stream_id = play.ask(body=None)
    play.exchange()
    play.application.opened[0].answer()
    play.client.send_data(stream_id, b"late")
    heard = play.exchange()
    assert of(events.StreamReset, heard)[0].error_code == ErrorCode.NO_ERROR
    assert goaway_code(play) is None


def test_header_blocks_in_pieces() -> None:
    play = begun()
    whole = block()
    play.feed(frames.frame(frames.HEADERS, 0, 1, whole[:5]))
    assert play.server.unfinished
    play.feed(frames.frame(frames.CONTINUATION, 0, 1, whole[5:9]))
    play.feed(frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, whole[9:]))
    assert not play.server.unfinished
    play.feed(frames.frame(frames.DATA, frames.END_STREAM, 1, b"hello"))
    assert b"hello" in play.output()


def test_a_large_header_block_of_ours_is_continued() -> None:
    data = frames.header_frames(1, b"x" * 40_000, frames.END_STREAM, 16384)
    kinds, position = [], 0
    while position < len(data):
        kind, flags, _ = frames.read_head(data, position)
        kinds.append((kind & 0xFF, flags))
        position += frames.HEAD_SIZE + (kind >> 8)
    assert kinds == [(frames.HEADERS, 1), (frames.CONTINUATION, 0), (frames.CONTINUATION, frames.END_HEADERS)]


def test_trailers_end_a_request() -> None:
    play = begun()
    stream_id = play.ask(body=None)
    play.client.send_data(stream_id, b"hello")
    play.client.send_headers(stream_id, [("x-sum", "1")], end_stream=True)
    assert body(play.exchange(), stream_id) == b"hello"


HEADERS = frames.HEADERS
WHOLE = frames.END_HEADERS | frames.END_STREAM


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frames.frame(HEADERS, WHOLE, 2, block()), ErrorCode.PROTOCOL_ERROR),
        (frames.frame(HEADERS, WHOLE, 0, block()), ErrorCode.PROTOCOL_ERROR),
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
        (frames.frame(HEADERS, WHOLE, 1, b"\xff"), ErrorCode.COMPRESSION_ERROR),
        (frames.frame(HEADERS, WHOLE, 1, b"\x82" * 70_000), ErrorCode.ENHANCE_YOUR_CALM),
        (frames.frame(HEADERS, WHOLE, 5, block()) + frames.frame(HEADERS, WHOLE, 3, block()), ErrorCode.STREAM_CLOSED),
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
def test_what_is_no_http2_client_is_told_so(greeting: bytes) -> None:
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
        ([(b"content-length", b"3")], b"four"),
        ([(b"content-length", b"3")], b"2b"),
    ],
)  # fmt: skip
def test_a_malformed_request_ends_alone(fields: list[tuple[bytes, bytes]], data: bytes | None) -> None:
    play = begun()
    whole = (
        fields if fields[0][0].startswith(b":") else [*((n.encode(), v.encode()) for n, v in head("/echo")), *fields]
    )
    play.feed(frames.frame(HEADERS, frames.END_HEADERS, 1, encode(whole)))
    if data is not None:
        play.feed(frames.frame(frames.DATA, frames.END_STREAM, 1, data))
    assert frames.rst_stream(1, ErrorCode.PROTOCOL_ERROR) in play.output()
    play.client.get_next_available_stream_id()
    play.feed(frames.frame(HEADERS, frames.END_HEADERS, 3, block()) + frames.frame(frames.DATA, 1, 3, b"hello"))
    assert b"hello" in play.output()


def test_more_than_a_streams_window_ends_the_stream() -> None:
    play = begun(limits=Limits(stream_window=100))
    play.feed(frames.frame(HEADERS, frames.END_HEADERS, 1, block()) + frames.frame(frames.DATA, 0, 1, bytes(101)))
    assert frames.rst_stream(1, ErrorCode.FLOW_CONTROL_ERROR) in play.output()
    assert play.application.opened[0].resets == 1
    assert goaway_code(play) is None


def test_more_than_the_connections_window_ends_it() -> None:
    play = begun(limits=Limits(stream_window=1 << 20, connection_window=70_000))
    play.feed(frames.frame(HEADERS, frames.END_HEADERS, 1, block()) + frames.frame(frames.DATA, 0, 1, bytes(70_001)))
    assert goaway_code(play) == ErrorCode.FLOW_CONTROL_ERROR


def test_more_streams_than_allowed_are_refused_and_may_come_again() -> None:
    play = begun(limits=Limits(streams=2), waits=True)
    play.feed(b"".join(frames.frame(HEADERS, WHOLE, stream_id, block()) for stream_id in (1, 3, 5)))
    assert frames.rst_stream(5, ErrorCode.REFUSED_STREAM) in play.output()
    play.application.due.pop(0).answer()
    play.feed(frames.frame(HEADERS, WHOLE, 7, block()))
    assert 7 in play.server.streams


def test_draining_sends_the_client_away_and_answers_what_comes_meanwhile() -> None:
    play = begun(waits=True)
    first = play.ask(body=b"1")
    play.exchange()
    play.server.drain()
    raced = first + 2
    play.feed(frames.frame(HEADERS, frames.END_HEADERS, raced, block()) + frames.frame(frames.DATA, 1, raced, b"2"))
    announced = play.output()
    assert frames.goaway(frames.MAX_STREAM_ID, ErrorCode.NO_ERROR) in announced
    play.feed(frames.ping(b"draining", frames.ACK))
    assert frames.goaway(raced, ErrorCode.NO_ERROR) in play.output()
    play.feed(frames.frame(HEADERS, WHOLE, raced + 2, block()))
    assert frames.rst_stream(raced + 2, ErrorCode.REFUSED_STREAM) in play.output()
    assert not play.server.closing
    for receiver in play.application.due:
        receiver.answer()
    assert play.server.closing
    assert play.output().count(b"\x00\x06status\x010") == 2


def test_a_client_that_just_came_is_sent_away_with_its_first_answer() -> None:
    play = begun()
    play.server.drain()
    assert goaway_code(play) is None
    play.feed(frames.frame(HEADERS, frames.END_HEADERS, 1, block()) + frames.frame(frames.DATA, 1, 1, b"hello"))
    answer = play.output()
    assert answer.index(b"hello") < answer.index(frames.goaway(frames.MAX_STREAM_ID, ErrorCode.NO_ERROR))


def test_a_client_that_says_goodbye_is_answered_to_the_end() -> None:
    play = begun(waits=True)
    play.ask(body=b"x")
    play.client.close_connection()
    play.exchange()
    assert not play.server.closing
    play.application.due[0].answer()
    assert play.server.closing


def test_pings_sooner_than_allowed_end_the_connection() -> None:
    play = begun(rules=KeepAliveRules(min_ping_interval=300.0, max_ping_strikes=2))
    for _ in range(2):
        play.ask(body=b"x")
        play.feed(frames.ping(bytes(8)))
        play.exchange()
    for _ in range(3):
        assert goaway_code(play) is None
        play.feed(frames.ping(bytes(8)))
    assert goaway_code(play) is None
    play.feed(frames.ping(bytes(8)))
    assert goaway_code(play) == ErrorCode.ENHANCE_YOUR_CALM
    assert b"too_many_pings" in play.sent

"""Requests of a connection: answered, reset, failed and cut off, each by itself."""

import pytest
from h2 import events

from argosy_runtime.http2 import ErrorCode, Limits, frames

from .heard import COMPLETE, HEADERS, begun, block, body, goaway_code, of


def test_a_request_is_answered() -> None:
    play = begun()
    stream_id = play.ask(body=b"hello")
    heard = play.carry()
    assert body(heard, stream_id) == b"hello"
    assert dict(of(events.TrailersReceived, heard)[0].headers)[b"status"] == b"0"
    assert not play.server.streams


def test_equal_heads_are_read_once_while_the_table_stands() -> None:
    play = begun()
    for _ in range(4):
        play.ask(body=b"x")
        play.carry()
    # The client's first block fills the table, its second is the first that stays true.
    assert len(play.application.heads) == 2
    assert len(play.application.opened) == 4
    play.ask("/echo", b"x", ("x-new", "enters the table"))
    play.carry()
    play.ask(body=b"x")
    play.carry()
    assert len(play.application.heads) == 4


def test_answers_of_one_pass_leave_together() -> None:
    play = begun(waits=True)
    for _ in range(3):
        play.ask(body=b"x")
    play.carry()
    wakes = play.wakes
    for receiver in play.application.due:
        receiver.answer()
    assert play.wakes == wakes + 1
    heard = play.carry()
    assert len(of(events.TrailersReceived, heard)) == 3


def test_an_exception_ends_its_stream_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    play = begun()
    bad, worse, good = play.ask("/raise", b"x"), play.ask("/speechless", b"x"), play.ask(body=b"hello")
    heard = play.carry()
    assert body(heard, good) == b"hello"
    assert dict(of(events.ResponseReceived, heard)[0].headers)[b":status"] == b"500"
    assert [event.stream_id for event in of(events.StreamReset, heard)] == [worse]
    assert isinstance(play.application.opened[0].errors[0], ValueError)
    assert [record.exc_info is not None for record in caplog.records] == [True, True]
    assert bad


def test_a_reset_reaches_the_receiver_once() -> None:
    play = begun(waits=True)
    stream_id = play.ask(body=b"x")
    play.carry()
    play.client.reset_stream(stream_id)
    play.carry()
    assert play.application.opened[0].resets == 1
    play.application.due[0].answer()
    play.server.lose()
    assert play.application.opened[0].resets == 1
    assert not play.carry()


def test_a_lost_connection_resets_its_requests() -> None:
    play = begun(waits=True)
    play.ask(body=b"x")
    play.carry()
    play.server.lose()
    assert play.application.opened[0].resets == 1


def test_an_early_answer_stops_the_client_and_reads_the_rest() -> None:
    play = begun()
    stream_id = play.ask(body=None)
    play.carry()
    play.application.opened[0].answer()
    play.client.send_data(stream_id, b"late")
    heard = play.carry()
    assert of(events.StreamReset, heard)[0].error_code == ErrorCode.NO_ERROR
    assert goaway_code(play) is None


def test_header_blocks_in_pieces() -> None:
    play = begun()
    full = block()
    play.feed(frames.frame(frames.HEADERS, 0, 1, full[:5]))
    assert play.server.unfinished
    play.feed(frames.frame(frames.CONTINUATION, 0, 1, full[5:9]))
    play.feed(frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, full[9:]))
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
    assert body(play.carry(), stream_id) == b"hello"


def test_more_streams_than_allowed_are_refused_and_may_come_again() -> None:
    play = begun(limits=Limits(streams=2), waits=True)
    play.feed(b"".join(frames.frame(HEADERS, COMPLETE, stream_id, block()) for stream_id in (1, 3, 5)))
    assert frames.rst_stream(5, ErrorCode.REFUSED_STREAM) in play.output()
    play.application.due.pop(0).answer()
    play.feed(frames.frame(HEADERS, COMPLETE, 7, block()))
    assert 7 in play.server.streams

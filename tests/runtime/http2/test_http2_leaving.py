"""Either side leaves: what was asked before is answered to the end."""

from argosy_runtime.http2 import ErrorCode, frames

from .heard import COMPLETE, HEADERS, begun, block, goaway_code


def test_draining_sends_the_client_away_and_answers_what_comes_meanwhile() -> None:
    play = begun(waits=True)
    first = play.ask(body=b"1")
    play.carry()
    play.server.drain()
    raced = first + 2
    play.feed(frames.frame(HEADERS, frames.END_HEADERS, raced, block()) + frames.frame(frames.DATA, 1, raced, b"2"))
    announced = play.output()
    assert frames.goaway(frames.MAX_STREAM_ID, ErrorCode.NO_ERROR) in announced
    play.feed(frames.ping(b"draining", frames.ACK))
    assert frames.goaway(raced, ErrorCode.NO_ERROR) in play.output()
    play.feed(frames.frame(HEADERS, COMPLETE, raced + 2, block()))
    assert frames.rst_stream(raced + 2, ErrorCode.REFUSED_STREAM) in play.output()
    assert not play.server.closing
    for receiver in play.application.due:
        receiver.answer()
    assert play.server.closing
    assert play.output().count(b"\x00\x06status\x010") == 2


def test_the_end_of_the_server_asks_open_requests_to_end_and_draining_does_not() -> None:
    play = begun(waits=True)
    play.ask(body=b"1")
    play.carry()
    play.server.drain()
    play.feed(frames.ping(b"draining", frames.ACK))
    assert [receiver.concluded for receiver in play.application.opened] == [0]
    play.server.finish()
    assert [receiver.concluded for receiver in play.application.opened] == [1]
    assert not play.server.closing
    play.application.due[0].answer()
    assert play.server.closing


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
    play.carry()
    assert not play.server.closing
    play.application.due[0].answer()
    assert play.server.closing

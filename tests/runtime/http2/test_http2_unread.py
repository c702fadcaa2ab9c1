"""A client that does not read its answers is limited in the bytes and the time that they stay."""

from h2 import events
from h2.settings import SettingCodes

from argosy_runtime.http2 import ErrorCode, Limits, frames

from .heard import body, goaway_code, of
from .playing import PREPARED, Play

ANSWER = bytes(10_000)


def deaf(waits: bool = False, **limits: int) -> Play:
    """Return a connection whose client reads its socket and opens no window."""
    play = Play(limits=Limits(**limits), waits=waits)
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    play.carry()
    return play


def open_windows(play: Play, size: int = 1 << 20) -> list[events.Event]:
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: size})
    play.client.increment_flow_control_window(size)
    return play.carry()


def test_requests_wait_while_too_much_of_the_answers_is_unsent() -> None:
    play = deaf(unsent_pause=25_000)
    streams = []
    for _ in range(10):
        streams.append(play.ask(body=ANSWER))
        play.carry()
    assert play.server.output.unsent == 30_000
    assert [len(one.body) for one in play.application.opened] == [1, 1, 1] + [0] * 7
    heard = open_windows(play)
    assert all(body(heard, stream_id) == ANSWER for stream_id in streams)
    assert play.server.output.unsent == 0
    assert not play.server.inbound.deferred


def test_a_body_that_waited_comes_in_one_piece_and_in_its_order() -> None:
    play = deaf(unsent_pause=1)
    play.ask(body=ANSWER)
    stream_id = play.ask(body=None)
    for piece in (b"a", b"b", b"c"):
        play.client.send_data(stream_id, piece)
        play.carry()
    receiver = play.application.opened[1]
    assert receiver.body == []
    open_windows(play)
    play.client.send_data(stream_id, b"d", end_stream=True)
    heard = play.carry()
    assert (receiver.body, body(heard, stream_id)) == ([b"abc", b"d"], b"abcd")


def test_the_connections_window_is_not_filled_up_while_requests_wait() -> None:
    play = deaf(unsent_pause=1, connection_window=200_000, stream_window=200_000)
    play.ask(body=ANSWER)
    stream_id = play.ask(body=None)
    while play.client.local_flow_control_window(stream_id) >= 10_000:
        play.client.send_data(stream_id, bytes(10_000))
        play.carry()
    assert play.client.outbound_flow_control_window < 10_000
    open_windows(play)
    assert play.client.outbound_flow_control_window > 100_000


def test_a_request_that_waits_can_be_abandoned() -> None:
    play = deaf(unsent_pause=1)
    play.ask(body=ANSWER)
    stream_id = play.ask(body=ANSWER)
    play.carry()
    play.client.reset_stream(stream_id)
    play.carry()
    assert not play.server.inbound.deferred
    assert (play.application.opened[1].body, play.application.opened[1].resets) == ([], 1)


def test_what_waits_of_a_stream_that_is_reset_counts_no_more() -> None:
    play = deaf(unsent_pause=1)
    first = play.ask(body=ANSWER)
    play.ask(body=b"second")
    play.carry()
    play.client.reset_stream(first)
    play.carry()
    assert play.application.opened[1].body == [b"second"]
    assert play.server.output.unsent == len(b"second")


def test_answers_to_earlier_requests_are_abandoned_beyond_the_limit() -> None:
    play = deaf(waits=True, unsent_limit=25_000)
    for _ in range(6):
        play.ask(body=ANSWER)
    play.carry()
    for receiver in play.application.due:
        receiver.answer()
    ended = of(events.StreamReset, play.carry())
    assert [event.error_code for event in ended] == [ErrorCode.ENHANCE_YOUR_CALM] * 3
    assert [receiver.resets for receiver in play.application.opened] == [0, 0, 0, 1, 1, 1]
    assert play.server.output.unsent == 30_000
    assert goaway_code(play) is None


def test_what_is_not_ready_to_be_sent_counts_as_unsent() -> None:
    play = deaf(waits=True, unsent_limit=25_000)
    for _ in range(4):
        play.ask(body=ANSWER)
    play.carry()
    first, second, third, fourth = [receiver.stream for receiver in play.application.opened]
    assert [item.reserve(10_000) for item in (first, first, second)] == [True, True, True]
    assert not third.reserve(1)
    fourth.respond(PREPARED, [ANSWER], len(ANSWER))
    assert [event.error_code for event in of(events.StreamReset, play.carry())] == [ErrorCode.ENHANCE_YOUR_CALM] * 2
    assert [receiver.resets for receiver in play.application.opened] == [0, 0, 1, 1]
    first.start(PREPARED.head)
    first.send_reserved(10_000, bytes(100))
    assert play.server.output.unsent == 20_100
    first.end(PREPARED.trailers)  # of the second part nothing came
    assert play.server.output.unsent == 10_100
    first.send_reserved(10_000, bytes(100))
    second.reset(ErrorCode.CANCEL)
    second.send_reserved(10_000, bytes(100))
    assert play.server.output.unsent == 100
    assert body(open_windows(play), first.id) == bytes(100)
    assert play.server.output.unsent == 0


def test_requests_go_on_once_less_is_unsent_though_nothing_was_sent() -> None:
    play = deaf(waits=True, unsent_pause=5_000)
    play.ask(body=ANSWER)
    play.carry()
    stream = play.application.opened[0].stream
    stream.start(PREPARED.head)
    stream.reserve(10_000)
    play.ask(body=b"second")
    play.carry()
    assert play.application.opened[1].body == []
    stream.send_reserved(10_000, bytes(100))
    play.carry()
    assert play.application.opened[1].body == [b"second"]


def test_an_answer_for_which_no_space_is_made_is_abandoned_in_time() -> None:
    play = deaf()
    slow, silent = play.ask(body=ANSWER), play.ask(body=ANSWER)
    play.carry()
    for now in (0.0, 5.0, 9.0):
        play.server.streams.give_up_stalled(now, patience=10.0)
        play.client.increment_flow_control_window(1, slow)
        assert not of(events.StreamReset, play.carry())
    play.server.streams.give_up_stalled(10.0, patience=10.0)
    assert [event.stream_id for event in of(events.StreamReset, play.carry())] == [silent]
    assert [receiver.resets for receiver in play.application.opened] == [0, 1]


def test_all_answers_may_be_abandoned_at_once() -> None:
    play = deaf(wasted_frames=10)
    for _ in range(50):
        play.ask(body=b"x")
    play.carry()
    for now in (0.0, 10.0):
        play.server.streams.give_up_stalled(now, patience=10.0)
    assert len(of(events.StreamReset, play.carry())) == 50
    assert not play.server.closing
    assert frames.goaway(0, ErrorCode.NO_ERROR)[3:4] not in play.output()

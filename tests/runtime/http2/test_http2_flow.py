"""Nothing is sent or taken beyond what the windows and the transport have room for."""

from h2 import events
from h2.settings import SettingCodes

from argosy_runtime.http2 import ErrorCode, Limits, frames

from .heard import HEADERS, begun, block, body, goaway_code, of
from .playing import Play, Streaming


def test_a_response_larger_than_the_windows_goes_out_as_they_open() -> None:
    play = Play()
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1000})
    play.carry()
    stream_id = play.ask(body=bytes(range(250)) * 20)
    heard = play.carry()
    assert len(body(heard, stream_id)) == 1000
    assert not of(events.TrailersReceived, heard)
    play.client.increment_flow_control_window(3000, stream_id)
    heard += play.carry()
    assert len(body(heard, stream_id)) == 4000
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 2000})
    heard += play.carry()
    assert body(heard, stream_id) == bytes(range(250)) * 20
    assert of(events.TrailersReceived, heard)


def test_streams_that_wait_share_the_connections_window() -> None:
    play = Play()
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1 << 20})
    play.carry()
    streams = [play.ask(body=bytes(100_000)) for _ in range(3)]
    heard = play.carry()
    assert {stream_id for stream_id in streams if body(heard, stream_id)} != set(streams)
    play.client.increment_flow_control_window(100_000)
    heard += play.carry()
    assert all(body(heard, stream_id) for stream_id in streams)


def test_nothing_is_sent_while_the_transport_takes_no_more() -> None:
    play = begun()
    play.server.output.paused = True
    stream_id = play.ask(body=b"hello")
    heard = play.carry()
    assert not body(heard, stream_id)
    play.server.output.paused = False
    play.server.streams.resume()
    assert body(play.carry(), stream_id) == b"hello"


def test_a_producer_is_paused_and_resumed() -> None:
    play = Play()
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1000})
    play.carry()
    stream_id = play.ask("/stream", None)
    for _ in range(3):
        play.client.send_data(stream_id, bytes(900))
    play.carry()
    receiver = play.application.opened[0]
    assert isinstance(receiver, Streaming)
    assert [len(piece) for piece in receiver.queued] == [900]
    play.client.increment_flow_control_window(10_000, stream_id)
    heard = play.carry()
    assert not receiver.queued
    assert len(body(heard + play.events, stream_id)) >= 2700


def test_credit_comes_back_only_as_the_receiver_takes_data() -> None:
    play = begun(limits=Limits(stream_window=1 << 16))
    stream_id = play.ask("/stream", None)
    play.server.output.paused = True
    window = play.client.local_flow_control_window(stream_id)
    while play.client.local_flow_control_window(stream_id) >= 10_000:
        play.client.send_data(stream_id, bytes(10_000))
        play.carry()
    assert window - play.client.local_flow_control_window(stream_id) == 60_000
    play.server.output.paused = False
    for _ in range(4):
        play.server.streams.resume()
        play.carry()
        play.client.increment_flow_control_window(60_000)
        play.client.increment_flow_control_window(60_000, stream_id)
    assert play.client.local_flow_control_window(stream_id) > 40_000


def test_padding_counts_for_windows_and_is_returned() -> None:
    play = begun(limits=Limits(stream_window=2000))
    stream_id = play.ask(body=None)
    for _ in range(40):
        play.client.send_data(stream_id, b"x", pad_length=200)
        play.carry()
    play.client.end_stream(stream_id)
    assert body(play.carry(), stream_id) == b"x" * 40


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

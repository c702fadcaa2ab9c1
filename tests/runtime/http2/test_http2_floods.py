"""Frames that cost a server work and a client nothing are limited; frequent frames of legitimate clients are not."""

import itertools
from collections.abc import Iterator

import pytest
from h2.settings import SettingCodes

from argosy_runtime.http2 import ErrorCode, Limits, frames
from argosy_runtime.http2.hpack.encoder import encode

from .playing import Play, head

BLOCK = encode([(name.encode(), value.encode()) for name, value in head("/echo")])
OPEN = frames.frame(frames.HEADERS, frames.END_HEADERS, 1, BLOCK)
ALLOWED = Limits().wasted_frames


def rapid_resets() -> Iterator[bytes]:
    for stream_id in itertools.count(1, 2):
        opened = frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, BLOCK)
        yield opened + frames.rst_stream(stream_id, ErrorCode.CANCEL)


def pings() -> Iterator[bytes]:
    return itertools.repeat(frames.ping(bytes(8)))


def settings() -> Iterator[bytes]:
    return itertools.repeat(frames.settings([]))


def empty_data() -> Iterator[bytes]:
    return itertools.chain([OPEN], itertools.repeat(frames.frame(frames.DATA, 0, 1, b"")))


def padding_alone() -> Iterator[bytes]:
    return itertools.chain([OPEN], itertools.repeat(frames.frame(frames.DATA, frames.PADDED, 1, b"\x05" + bytes(5))))


def continuations() -> Iterator[bytes]:
    begin = frames.frame(frames.HEADERS, 0, 1, BLOCK)
    return itertools.chain([begin], itertools.repeat(frames.frame(frames.CONTINUATION, 0, 1, b"")))


def priorities() -> Iterator[bytes]:
    return itertools.repeat(frames.frame(frames.PRIORITY, 0, 1, b"\0\0\0\x03\x01"))


def window_updates() -> Iterator[bytes]:
    return itertools.chain([OPEN], itertools.repeat(frames.window_update(1, 1)))


def unknown_frames() -> Iterator[bytes]:
    return itertools.repeat(frames.frame(77, 0, 0, b""))


def refused_streams() -> Iterator[bytes]:
    for stream_id in itertools.count(1, 2):
        yield frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, BLOCK)


def malformed_requests() -> Iterator[bytes]:
    for stream_id in itertools.count(1, 2):
        yield frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, BLOCK + encode([(b"te", b"x")]))


FLOODS = [
    rapid_resets,
    pings,
    settings,
    empty_data,
    padding_alone,
    continuations,
    priorities,
    window_updates,
    unknown_frames,
    refused_streams,
    malformed_requests,
]


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_a_flood_ends_the_connection(flood: "type[Iterator[bytes]]") -> None:
    play = Play(limits=Limits(streams=50))
    play.carry()
    sent = 0
    for data in itertools.islice(flood(), 3 * ALLOWED):
        play.feed(data)
        sent += 1
        if play.server.closing:
            break
    assert play.server.closing
    assert sent <= ALLOWED + 100
    assert frames.goaway(0, ErrorCode.ENHANCE_YOUR_CALM)[-4:] in play.output()
    assert not play.server.streams


def test_what_is_recorded_of_a_client_is_bounded() -> None:
    limits = Limits(cached_blocks=10, streams=20)
    play = Play(limits=limits)
    play.carry()
    for number in range(200):
        stream_id = 2 * number + 1
        block = BLOCK + encode([(b"x-id", b"%d" % number)])
        play.feed(frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block))
        # Answered before its end: the client may go on sending, which has to be remembered for a while.
        play.application.opened[-1].answer()
        play.output()
    assert len(play.server._blocks.openings) <= limits.cached_blocks
    assert len(play.server.inbound.abandoned) <= limits.streams
    assert not play.server.closing


def test_frames_without_effect_are_forgiven_in_time() -> None:
    play = Play()
    play.carry()
    for _ in range(5):
        for _ in range(ALLOWED - 10):
            play.feed(frames.ping(bytes(8)))
        play.now += 11.0
    assert not play.server.closing


def test_a_client_that_reads_in_small_windows_is_no_flood() -> None:
    play = Play()
    play.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 10})
    play.carry()
    size = 40 * ALLOWED
    stream_id = play.ask(body=bytes(size))
    play.carry()
    for _ in range(size // 10 - 1):
        play.client.increment_flow_control_window(10, stream_id)
        play.client.increment_flow_control_window(10)
        play.carry()
    assert not play.server.closing
    assert not play.server.streams


def test_window_updates_and_pings_for_every_answer_are_no_flood() -> None:
    play = Play()
    play.carry()
    for _ in range(ALLOWED):
        stream_id = play.ask(body=b"x")
        play.client.ping(bytes(8))
        play.carry()
        play.feed(frames.window_update(stream_id, 1) + frames.window_update(0, 1))
    assert not play.server.closing

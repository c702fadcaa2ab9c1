"""A client that is right about everything and does it in the worst order; and one that is right about nothing."""

import random
import struct
from typing import Any

from h2 import events, exceptions
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import examples

from argosy_runtime.http2 import KeepAliveRules, Limits, frames

from .playing import Play, head

ANY_PINGS = KeepAliveRules(max_ping_strikes=0)


class Client:
    """Sends requests in random pieces, reads answers in random pieces, pauses, pads, pings and gives up."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.play = Play(
            limits=Limits(stream_window=self.random.choice([5000, 1 << 16, 4 << 20])), rules=ANY_PINGS, waits=True
        )
        self.h2 = self.play.client
        self.play.carry()
        self.h2.update_settings(
            {
                SettingCodes.INITIAL_WINDOW_SIZE: self.random.choice([300, 5000, 65535, 1 << 20]),
                SettingCodes.MAX_FRAME_SIZE: self.random.choice([16384, 70000]),
            }
        )
        # hyper-h2 reads all that comes in one piece by the frame size from before its settings were acknowledged.
        self.play.carry()
        self.unread = bytearray()
        self.unsent: dict[int, bytes] = {}
        self.bodies: dict[int, bytes] = {}
        self.got: dict[int, bytearray] = {}
        self.ended: set[int] = set()
        self.abandoned: set[int] = set()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def ask(self) -> None:
        stream_id = self.h2.get_next_available_stream_id()
        more = [("x-" + str(self.random.randrange(5)), "v" * self.random.randrange(60))] if self.chance(0.3) else []
        self.h2.send_headers(stream_id, head("/stream" if self.chance(0.4) else "/echo", *more))
        size = self.random.choice([0, 1, 30, 3000, 120_000])
        self.bodies[stream_id] = self.unsent[stream_id] = self.random.randbytes(3) * size
        self.got[stream_id] = bytearray()
        if self.chance(0.1):
            self.h2.ping(b"12345678")

    def turn(self) -> bool:
        """Send and read once; return whether anything is left to do."""
        for stream_id in list(self.unsent):
            self._send_some(stream_id)
        self._carry(self.h2.data_to_send() or b"")
        self._let_the_server_go_on()
        self._read()
        return bool(self.unsent or self.bodies.keys() - self.ended - self.abandoned)

    def _send_some(self, stream_id: int) -> None:
        if self.chance(0.02):
            self.h2.reset_stream(stream_id)
            self.abandoned.add(stream_id)
            del self.unsent[stream_id]
            return
        body = self.unsent[stream_id]
        window = min(self.h2.local_flow_control_window(stream_id), self.h2.max_outbound_frame_size)
        size = min(window, len(body), self.random.choice([1, 10, 1000, 1 << 20]))
        if not size and body:
            return
        padding = self.random.choice([None, 0, 7]) if size + 8 <= window else None
        last = size == len(body)
        self.h2.send_data(stream_id, body[:size], end_stream=last, pad_length=padding)
        self.unsent[stream_id] = body[size:]
        if last:
            del self.unsent[stream_id]

    def _carry(self, data: bytes) -> None:
        while data:
            size = self.random.choice([1, 5, 9, 100, 1000]) if self.chance(0.3) else len(data)
            self.play.feed(data[:size])
            data = data[size:]
        assert not self.play.server.closing

    def _let_the_server_go_on(self) -> None:
        due, output = self.play.application.due, self.play.server.output
        if due and self.chance(0.5):
            due.pop(self.random.randrange(len(due))).answer()
        output.paused = self.chance(0.1)
        self.unread += self.play.output()

    def _read(self) -> None:
        size = len(self.unread) if self.chance(0.5) else self.random.randrange(len(self.unread) + 1)
        data, self.unread = bytes(self.unread[:size]), self.unread[size:]
        for event in self.h2.receive_data(data) if data else ():
            self._heard(event)

    def _heard(self, event: Any) -> None:
        if isinstance(event, events.DataReceived):
            self.got[event.stream_id] += event.data
            if event.flow_controlled_length:
                try:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                except exceptions.StreamClosedError:
                    assert event.stream_id in self.abandoned
        elif isinstance(event, events.TrailersReceived):
            assert dict(event.headers)[b"status"] == b"0"
            self.ended.add(event.stream_id)
        assert not isinstance(event, events.ConnectionTerminated)
        assert not isinstance(event, events.StreamReset) or event.stream_id in self.abandoned


@given(st.integers(0, 1 << 32))
@examples(120)
def test_every_request_is_answered_completely_whatever_the_order(seed: int) -> None:
    client = Client(seed)
    for _ in range(client.random.randrange(1, 15)):
        client.ask()
        if client.chance(0.4):
            client.turn()
    turns = 0
    while client.turn():
        turns += 1
        assert turns < 20_000, "stuck"
    for stream_id, body in client.bodies.items():
        assert stream_id in client.abandoned or bytes(client.got[stream_id]) == body
    client.play.server.output.paused = False
    client.play.output()
    assert not client.play.server.streams
    assert not client.play.server.output.blocked


def damaged(choose: random.Random) -> bytearray:
    """Return a client's bytes with some changed, some lost, and frames put in."""
    play = Play(rules=ANY_PINGS)
    for _ in range(6):
        play.ask(choose.choice(["/echo", "/stream"]), bytes(choose.choice([0, 5, 300])))
    data = bytearray(play.client.data_to_send())
    for _ in range(choose.randrange(1, 8)):
        offset, what = choose.randrange(len(data)), choose.random()
        if what < 0.4:
            data[offset] = choose.randrange(256)
        elif what < 0.6:
            del data[offset : offset + choose.randrange(1, 20)]
        else:
            size = choose.choice([0, 4, 5, 6, 8, choose.randrange(70_000)])
            stream_id = choose.choice([0, 1, 2, 3, 5, 17, choose.randrange(1 << 32)])
            inserted = struct.pack(">IBI", size << 8 | choose.randrange(12), choose.randrange(256), stream_id)
            data[offset:offset] = inserted + choose.randbytes(choose.choice([0, size & 15]))
    return data


@given(st.integers(0, 1 << 32))
@examples(400)
def test_whatever_comes_nothing_is_raised_and_nothing_stays(seed: int) -> None:
    choose = random.Random(seed)
    data, play = damaged(choose), Play(rules=ANY_PINGS)
    while data and not play.server.closing:
        size = choose.randrange(1, 200)
        play.feed(bytes(data[:size]))
        del data[:size]
        play.output()
    if play.server.closing:
        assert frames.head(frames.GOAWAY, 0, 0, 8)[3:4] in play.sent
    play.server.lose()
    assert not play.server.streams
    assert not play.server.output.blocked
    assert all(receiver.resets <= 1 for receiver in play.application.opened)

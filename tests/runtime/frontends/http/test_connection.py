"""One connection without a socket: requests in pieces, bodies of every kind, order, limits, the ends it may come to."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.frontends.http.echo import LIMIT, EchoApp, post, turns
from tests.runtime.frontends.http.wire import Wire

from argosy_runtime.frontends.http.wire.bodies import MOST_CHUNKS
from argosy_runtime.frontends.http.wire.heads import MAX_HEAD_BYTES
from argosy_runtime.frontends.http.wire.reply import Reply
from argosy_runtime.frontends.http.wire.request_context import RequestContext
from argosy_runtime.frontends.http.wire.timeouts import Phase
from argosy_runtime.traces import TRACING

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "


async def test_a_head_is_read_once() -> None:
    app = EchoApp()
    wire = Wire(app)
    for _ in range(3):
        wire.feed(post("/echo", b"abc"))
    assert wire.written == (OK + b"3\r\n\r\nabc") * 3
    assert len(app.made) == 1


async def test_no_more_heads_are_recorded_than_a_server_can_bear() -> None:
    app = EchoApp()
    wire = Wire(app)
    for number in (*range(1025), 1, 0):
        wire.feed(post("/echo", b"", f"X-Request: {number}"))
    assert len(app.made) == 1026
    for _ in range(2):
        wire.feed(post("/echo", b"", f"X-Long: {'x' * 5000}"))
    assert len(app.made) == 1028


async def test_a_traced_request_has_not_the_time_of_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    app = EchoApp()
    wire = Wire(app)
    sent = post("/later", b"abc")
    for traced, piece in ((True, sent[:-1]), (False, sent[-1:])):
        monkeypatch.setattr(TRACING, "on", traced)
        wire.feed(piece)
    app.later[0].reply(Reply(200, ()))
    monkeypatch.setattr(TRACING, "on", True)
    begun = time.monotonic_ns()
    wire.feed(sent)
    assert app.later[1].received >= begun


@pytest.mark.parametrize("size", [1, 2, 7, 60])
async def test_requests_come_in_any_pieces(size: int) -> None:
    app = EchoApp()
    wire = Wire(app)
    pieces = b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces += b"3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: t\r\n\r\n"
    sent = post("/echo", b"one") + pieces + b"\r\n" + post("/echo", b"") + post("/none", b"x") + post("/echo", b"last")
    for at in range(0, len(sent), size):
        wire.feed(sent[at : at + size])
    assert app.bodies == [b"one", b"abc0123456789", b"", b"last"]
    assert wire.written.count(OK) == 4
    assert wire.written.endswith(OK + b"4\r\n\r\nlast")
    assert b"HTTP/1.1 404 Not Found" in wire.written


@given(
    st.lists(st.tuples(st.binary(max_size=200), st.lists(st.integers(1, 80), max_size=3) | st.none()), max_size=5),
    st.lists(st.integers(0, 3000), max_size=8),
)
def test_requests_are_the_same_however_they_come(made: list[tuple[bytes, list[int] | None]], cuts: list[int]) -> None:
    sent = b"".join(post("/echo", body) if sizes is None else chunked(body, sizes) for body, sizes in made)
    locations = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})

    async def bodies() -> list[bytes]:
        app = EchoApp()
        wire = Wire(app)
        for begin, end in pairwise(locations):
            wire.feed(sent[begin:end])
        assert wire.written == b"".join(OK + b"%d\r\n\r\n%b" % (len(body), body) for body, _ in made)
        return app.bodies

    assert asyncio.run(bodies()) == [body for body, _ in made]


def chunked(body: bytes, sizes: list[int]) -> bytes:
    sent, at = b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 0
    for size in [*sizes, len(body)]:
        piece = body[at : at + size]
        at += len(piece)
        sent += b"%X\r\n%b\r\n" % (len(piece), piece) if piece else b""
    return sent + b"0\r\n\r\n"


async def test_a_long_body_is_read_to_its_slot_and_the_next_request_follows() -> None:
    app = EchoApp()
    body = bytes(range(256)) * 400
    wire = Wire(app, max_body=len(body))
    sent = post("/later", body) + post("/later", b"next")
    for at in range(0, len(sent), 30_000):
        wire.feed(sent[at : at + 30_000])
    assert app.bodies == [body]
    app.later[0].reply(Reply(200))
    await turns()
    assert app.bodies == [body, b"next"]


async def test_what_comes_meanwhile_waits_its_turn_and_no_more_is_read() -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(post("/later", b"1") + post("/echo", b"2"))
    wire.feed(post("/echo", b"3"))
    assert app.bodies == [b"1"]
    assert not wire.reading
    app.later[0].reply(Reply(200, (b"1",)))
    await turns()
    assert app.bodies == [b"1", b"2", b"3"]
    assert wire.reading
    assert wire.written == b"".join(OK + b"1\r\n\r\n%d" % number for number in (1, 2, 3))


async def test_a_long_body_without_its_own_header_is_not_retained() -> None:
    class TooLong(EchoApp):
        def begin(self, context: RequestContext) -> None:
            self.bodies.append(b"%d %d" % (context.size, len(context.data)))
            context.reply(Reply(400))

    app = TooLong()
    wire = Wire(app, max_body=LIMIT)
    chunk = b"%x\r\n" % LIMIT + bytes(LIMIT) + b"\r\n"
    wire.feed(post("/echo", bytes(LIMIT + 1)))
    wire.feed(b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 2 + b"0\r\n\r\n")
    wire.feed(post("/echo", bytes(LIMIT + 1), "Inference-Header-Content-Length: 0"))
    assert app.bodies[:2] == [b"201 0", b"400 0"]
    assert int(app.bodies[2].split()[1]) > LIMIT


async def test_expect_is_answered_before_the_body_and_only_where_it_is_missing() -> None:
    wire = Wire(EchoApp())
    sent = post("/echo", b"abc", "Expect: 100-continue")
    wire.feed(sent[:-3])
    assert wire.written == b"HTTP/1.1 100 Continue\r\n\r\n"
    wire.feed(b"abc" + sent)
    assert wire.written.count(b"100 Continue") == 1
    assert wire.written.count(OK) == 2


async def test_old_clients_and_those_that_close() -> None:
    for head, connection in (
        (b"GET /echo HTTP/1.0\r\n\r\n", b""),
        (b"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"Connection: keep-alive\r\n"),
        (b"GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n", b""),
        (b"GET /echo HTTP/1.1\r\nConnection: Keep-Alive\r\n\r\n", b""),
    ):
        wire = Wire(EchoApp())
        wire.feed(head)
        closes = b"1.0\r\n\r\n" in head or b"close" in head
        assert wire.closed is closes
        assert (b"Connection: close" in wire.written) is closes
        assert connection in wire.written


BAD = [
    b"nonsense\r\n\r\n",
    b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/1.1\nA: b\n\n",
    b"GET http://[a HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nA: " + b"a" * MAX_HEAD_BYTES,
    b"GET / HTTP/1.1\r\nA: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: foo\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked, foo\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1" + b" " * 5000,
    b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 20_000,
]


@pytest.mark.parametrize("sent", BAD)
async def test_what_is_no_request_is_refused_and_cut(sent: bytes) -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(sent)
    assert wire.written.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Connection: close\r\n" in wire.written
    assert wire.closed
    assert app.bodies == []


async def test_a_body_that_no_memory_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "empty", full)
    wire = Wire(EchoApp())
    wire.feed(b"POST /echo HTTP/1.1\r\nInference-Header-Content-Length: 1\r\nContent-Length: 900000\r\n\r\n")
    assert wire.written.startswith(b"HTTP/1.1 413 ")
    assert wire.closed


@pytest.mark.parametrize("length", [2**31, 10**19])
async def test_a_body_longer_than_any_is_refused_at_once(length: int) -> None:
    wire = Wire(EchoApp())
    wire.feed(b"POST /echo HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length)
    head, _, body = wire.written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"] == (
        f"Unable to parse Content-Length, value is out of range [ -2147483648, 2147483647 ], got: {length}"
    )
    assert wire.closed


async def test_chunks_made_by_hand_count_and_their_length_does_not() -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(
        b"POST /echo HTTP/1.1\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        + post("/echo", b"smuggled")
    )
    assert app.bodies == [b"ok"]
    assert b"Connection: close\r\n" in wire.written
    assert wire.closed


async def test_chunks_of_http_1_0_end_the_connection_because_something_between_may_not_know_them() -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(
        b"POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        + post("/echo", b"smuggled")
    )
    assert app.bodies == [b"ok"]
    assert b"Connection: close\r\n" in wire.written
    assert wire.closed


@pytest.mark.parametrize("more", [0, 1])
async def test_a_body_has_a_limited_number_of_chunks(more: int) -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    wire.feed(b"1\r\nA\r\n" * (MOST_CHUNKS + more))
    wire.feed(b"0\r\n\r\n")
    if more:
        assert app.bodies == []
        assert wire.closed
        assert b"Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer or larger" in wire.written
    else:
        assert app.bodies == [b"A" * MOST_CHUNKS]


async def test_an_error_no_one_foresaw_is_an_answer() -> None:
    wire = Wire(EchoApp())
    wire.feed(post("/fails", b"") + post("/echo", b"x"))
    assert wire.written.startswith(b"HTTP/1.1 500 ")
    assert wire.written.endswith(OK + b"1\r\n\r\nx")


async def _hang_up(wire: Wire) -> None:
    wire.close()


async def _stop(wire: Wire) -> None:
    wire.connection.finish()
    wire.connection.cancel()


@pytest.mark.parametrize("path", ["/later", "/coroutine"])
@pytest.mark.parametrize(("end", "message"), [(_hang_up, b""), (_stop, b"HTTP/1.1 503 ")])
async def test_what_is_under_way_is_cancelled(
    path: str, end: Callable[[Wire], Awaitable[None]], message: bytes
) -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(post(path, b"x"))
    await turns()
    await end(wire)
    await turns()
    assert app.cancelled == 1
    assert wire.written[:13] == message
    assert wire.connections == set()
    for context in app.later:
        context.reply(Reply(200))
    assert wire.written[:13] == message


@pytest.mark.parametrize("requests", [1, 3])
async def test_a_client_that_only_ends_its_side_is_answered(requests: int) -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(b"".join(post("/later", b"%d" % number) for number in range(requests)))
    for number in range(requests):
        # What waits its turn is not read, and so the end is not seen before the last request has begun.
        if number == requests - 1:
            wire.end()
        assert not wire.closed
        app.later[number].reply(Reply(200, (b"%d" % number,)))
        await turns()
    assert wire.written.count(b"HTTP/1.1 200 OK") == requests
    assert wire.written.endswith(b"Connection: close\r\n\r\n%d" % (requests - 1))
    assert wire.closed


async def test_a_stream_is_ended_for_a_client_that_ended_its_side_within_it() -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(post("/later", b"x"))
    app.later[0].start(200, ())
    wire.end()
    assert wire.connection.phase is Phase.ANSWERING
    await app.later[0].write(b"y")
    app.later[0].end()
    assert wire.written.endswith(b"1\r\ny\r\n0\r\n\r\n")
    assert wire.closed


async def test_a_client_that_ended_its_side_reads_a_stream_as_slowly_as_it_likes() -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(post("/later", b"x"))
    app.later[0].start(200, ())
    wire.end()
    wire.connection.pause_writing()
    wire.now = 1.0
    wire.connection.resume_writing()
    wire.end()  # what is read first after a pause is the end
    assert not wire.closed
    app.later[0].end()
    assert wire.written.endswith(b"0\r\n\r\n")
    assert wire.closed


async def test_a_client_that_ends_its_side_later_has_hung_up() -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(post("/later", b"x"))
    wire.now = 1.0
    wire.end()
    assert wire.closed
    assert app.cancelled == 1


@pytest.mark.parametrize("sent", [b"", b"POST /echo HT", post("/echo", b"abc")[:-1], post("/echo", b"abc")])
async def test_a_client_that_ends_its_side_with_nothing_due_is_let_go(sent: bytes) -> None:
    wire = Wire(EchoApp())
    wire.feed(sent)
    wire.end()
    assert wire.closed


async def test_an_unfinished_request_behind_the_last_answer_is_dropped() -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(post("/later", b"x"))
    wire.end()
    wire.connection._ahead = b"POST /ec"
    wire.connection._writer.more = True
    app.later[0].reply(Reply(200))
    assert wire.closed


async def test_finishing_answers_what_is_in_flight_and_nothing_more() -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(post("/later", b"1") + post("/echo", b"2"))
    wire.connection.finish()
    assert not wire.closed
    app.later[0].reply(Reply(200, (b"1",)))
    await turns()
    assert wire.written.endswith(b"Connection: close\r\n\r\n1")
    assert wire.closed
    idle = Wire(app)
    idle.connection.finish()
    assert idle.closed


@pytest.mark.parametrize(
    ("length", "body"), [(b"03", b"abc"), (b"0 ", b""), (b"0" * 5000 + b"3\t", b"abc"), (b"0" * 5000 + b" ", b"")]
)
async def test_a_length_may_begin_with_any_number_of_zeros_and_end_with_a_blank(length: bytes, body: bytes) -> None:
    app = EchoApp()
    wire = Wire(app)
    wire.feed(b"POST /echo HTTP/1.1\r\nContent-Length: " + length + b"\r\n\r\n" + body)
    assert app.bodies == [body]

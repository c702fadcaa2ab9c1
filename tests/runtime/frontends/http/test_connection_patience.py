"""The time limits of a connection: for a client that sends slowly, or that does not read."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.runtime.frontends.http.echo import EchoApp, post
from tests.runtime.frontends.http.wire import FullWire, Wire

from argosy_runtime.frontends.http.wire.listener import sweep
from argosy_runtime.frontends.http.wire.timeouts import Phase, Timeouts

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "


async def waiting_for_a_head() -> Wire:
    wire = Wire(EchoApp())
    wire.feed(b"POST /echo HTTP/1.1\r\n")
    return wire


async def waiting_for_a_body() -> Wire:
    wire = Wire(EchoApp())
    wire.feed(post("/echo", b"abc")[:-1])
    return wire


async def waiting_for_a_long_body() -> Wire:
    wire = Wire(EchoApp(), max_body=1 << 20)
    wire.feed(post("/echo", bytes(100_000))[:-1])
    return wire


async def waiting_for_a_request() -> Wire:
    wire = Wire(EchoApp())
    wire.feed(post("/echo", b"abc"))
    wire.written = b""
    return wire


async def waiting_for_a_reader() -> Wire:
    wire = Wire(EchoApp())
    wire.feed(post("/later", b"abc"))
    wire.connection.pause_writing()
    return wire


async def waiting_for_an_answer_to_whom_may_be_gone() -> Wire:
    wire = Wire(EchoApp())
    wire.feed(post("/later", b"abc"))
    wire.end()
    return wire


async def test_a_connection_is_expected_to_be_used_again_for_a_while_after_its_request() -> None:
    wire = await waiting_for_a_request()
    wire.connection.drain()
    assert wire.connection.expects(14.9, 15.0)
    assert not wire.connection.expects(15.0, 15.0)


async def test_a_connection_that_was_just_opened_is_expected_to_be_used() -> None:
    wire = Wire(EchoApp(), draining=True)
    assert wire.connection.expects(14.9, 15.0)
    assert not wire.connection.expects(15.0, 15.0)


async def test_the_answer_of_a_long_stream_is_the_last_use_of_its_connection() -> None:
    wire = Wire(EchoApp())
    wire.feed(post("/later", b"abc") + post("/later", b"abc"))
    wire.connection.drain()
    assert wire.connection.expects(100.0, 15.0)
    wire.now = 100.0
    await asyncio.sleep(0)
    assert wire.connection.expects(114.9, 15.0)


@pytest.mark.parametrize("waiting", [waiting_for_a_head, waiting_for_a_body, waiting_for_a_long_body])
async def test_a_request_that_is_on_its_way_is_expected(waiting: Callable[[], Awaitable[Wire]]) -> None:
    wire = await waiting()
    wire.connection.drain()
    assert wire.connection.expects(1000.0, 15.0)


TIMEOUTS = Timeouts(head=10, body=20, idle=40)


@pytest.mark.parametrize(
    ("waiting", "phase", "seconds", "message"),
    [
        (waiting_for_a_head, Phase.HEAD, 10, b"HTTP/1.1 408 "),
        (waiting_for_a_body, Phase.BODY, 20, b"HTTP/1.1 408 "),
        (waiting_for_a_long_body, Phase.BODY, 20, b"HTTP/1.1 408 "),
        (waiting_for_a_request, Phase.IDLE, 40, b""),
        (waiting_for_a_reader, Phase.WRITING, 40, b""),
        (waiting_for_an_answer_to_whom_may_be_gone, Phase.HALF_CLOSED, 20, b""),
    ],
)
async def test_no_client_is_waited_for_for_ever(
    waiting: Callable[[], Awaitable[Wire]], phase: Phase, seconds: float, message: bytes
) -> None:
    wire = await waiting()
    assert wire.connection.phase is phase
    sweep(wire.connections, 100, TIMEOUTS.limits)
    sweep(wire.connections, 100 + seconds - 1, TIMEOUTS.limits)
    assert not wire.closed
    sweep(wire.connections, 100 + seconds, TIMEOUTS.limits)
    assert wire.closed
    assert wire.aborted is (phase in (Phase.WRITING, Phase.HALF_CLOSED))
    assert wire.written[:13] == message


@pytest.mark.parametrize("at_once", [True, False], ids=["one piece", "one by one"])
async def test_requests_of_a_client_that_does_not_read_wait_unanswered(at_once: bool) -> None:
    app = EchoApp()
    wire = FullWire(app)
    request = post("/echo", b"a" * 10_000)
    for piece in [request * 500] if at_once else [request] * 500:
        wire.feed(piece)
    assert wire.unread < FullWire.HIGH + 2 * len(request)
    assert len(app.bodies) < 10
    assert not wire.reading
    while len(app.bodies) < 500:
        wire.read(50_000)
        assert wire.unread < FullWire.HIGH + 2 * len(request)
        await asyncio.sleep(0)
    assert wire.written.count(b"HTTP/1.1 200 OK") == 500
    wire.read(wire.unread)
    assert wire.reading


@pytest.mark.parametrize("size", [100, 100_000])
async def test_a_client_that_leaves_a_full_answer_unread_is_cut_off(size: int) -> None:
    wire = FullWire(EchoApp())
    wire.feed(post("/echo", b"a" * size))
    assert wire.connection.phase is Phase.WRITING
    for second in (100, 139):
        sweep(wire.connections, second, TIMEOUTS.limits)
        assert not wire.closed
    sweep(wire.connections, 140, TIMEOUTS.limits)
    assert wire.aborted


async def test_a_client_that_reads_slowly_is_not_cut_off() -> None:
    wire = FullWire(EchoApp())
    wire.feed(post("/echo", b"a" * 100_000))
    for second in range(100, 1000, 30):
        sweep(wire.connections, second, TIMEOUTS.limits)
        wire.read(1000)
        assert not wire.closed


async def test_a_body_that_arrives_has_no_deadline_and_a_head_has() -> None:
    for begun, closed in ((post("/echo", b"a" * 50)[:-50], False), (b"POST /echo HTTP/1.1\r\nA: ", True)):
        wire = Wire(EchoApp())
        wire.feed(begun)
        for second in range(0, 60, 5):
            sweep(wire.connections, second, TIMEOUTS.limits)
            wire.feed(b"a")
        assert wire.closed is closed


async def test_a_request_at_work_is_waited_for() -> None:
    app: Any = EchoApp()
    wire = Wire(app)
    wire.feed(post("/later", b"abc"))
    for second in (0, 1000, 2000):
        sweep(wire.connections, second, TIMEOUTS.limits)
    assert not wire.closed


def test_the_sweep_comes_often_enough_and_not_at_all_where_nothing_ends() -> None:
    assert TIMEOUTS.period == 2.5
    assert Timeouts(head=0, body=0, idle=0).period == float("inf")
    assert Timeouts(head=0, body=0, idle=1000).period == 5.0

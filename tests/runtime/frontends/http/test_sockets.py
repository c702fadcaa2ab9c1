"""Connections over real sockets: in order, hung up, of an older HTTP, drained."""

import asyncio
import json
import socket
import struct

import httpx
import pytest
from tests.runtime.frontends.conftest import Running
from tests.runtime.frontends.http.asking import ECHO, GOOD, round_trip

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.http import app as http_frontend


@pytest.mark.parametrize("path", ["infer", "generate_stream"])
def test_hanging_up_cancels(running: Running, path: str) -> None:
    body = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1],"data":[1]}],"IN":1}'
    if path != "infer":
        body = b'{"IN":1}'
    with socket.create_connection(("127.0.0.1", running.http)) as connection:
        head = f"POST /v2/models/slow/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        assert running.plane.started.wait(60)
        # Else the end of its side might be all that is said: see the next test.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert running.plane.cancelled.wait(60)


def test_a_client_that_ends_its_side_at_once_is_answered(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.http)) as connection:
        head = b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(GOOD)
        # Request and end leave together.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        connection.sendall(head + GOOD)
        connection.shutdown(socket.SHUT_WR)
        assert running.plane.started.wait(60)
        running.plane.released.set()
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Connection: close" in answer
    assert b'"outputs"' in answer


def test_hanging_up_within_the_body_harms_nothing(client: httpx.Client, running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.http)) as connection:
        connection.sendall(b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
    assert client.get("/v2/health/live").status_code == 200
    assert running.plane.requests == []


def test_pipelined_requests_are_answered_in_order(running: Running) -> None:
    bodies = [json.dumps({**ECHO, "id": str(index)}).encode() for index in range(3)]
    sent = b"".join(
        b"POST /v2/models/echo/infer HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies
    )
    back = round_trip(running.http, sent + b"GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert [back.find(b'"id":"%d"' % index) for index in range(3)] == sorted(
        back.find(b'"id":"%d"' % index) for index in range(3)
    )
    assert back.count(b"HTTP/1.1 200 OK") == 4
    assert back.endswith(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )


async def test_a_draining_listener_closes_connections_after_their_answers(running: Running) -> None:
    listener = await http_frontend.serve(running.plane, http_frontend.HttpOptions(host="127.0.0.1", port=0))
    ready = b"GET /v2/health/ready HTTP/1.1\r\n\r\n"
    stream = b"POST /v2/models/repeat/generate_stream HTTP/1.1\r\nContent-Length: 8\r\n\r\n" + b'{"IN":1}'
    open_reader, open_writer = await asyncio.open_connection("127.0.0.1", listener.port)
    open_writer.write(ready)
    assert (
        await open_reader.readuntil(b"\r\n\r\n")
        == b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"
    )
    listener.drain()
    open_writer.write(ready * 2)
    answers = (await open_reader.read()).split(b"HTTP/1.1 200 OK")
    assert [b"Connection: close" in answer for answer in answers] == [False, False, True]
    for sent in (ready, stream):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(sent)
        back = await reader.read()
        assert back.startswith(b"HTTP/1.1 200 OK")
        assert b"Connection: close" in back
        writer.close()
    open_writer.close()
    await listener.stop(1.0)


def test_http_1_0_gets_plain_streams(running: Running) -> None:
    body = b'{"IN":1}'
    head = b"POST /v2/models/repeat/generate_stream HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body)
    back = round_trip(running.http, head + body)
    assert b"chunked" not in back
    assert back.endswith(b'\r\n\r\ndata: {"OUT":0,"model_name":"repeat","model_version":"1"}\n\n')


@pytest.mark.parametrize("sent", [b"nonsense\r\n\r\n", b"GET /v2 HTTP/1.1\r\nA: " + b"a" * 70_000 + b"\r\n\r\n"])
def test_what_is_no_http_is_refused_and_cut(running: Running, sent: bytes) -> None:
    assert round_trip(running.http, sent).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_an_offer_to_upgrade_is_ignored(running: Running) -> None:
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n"
    last = b"GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n"
    back = round_trip(running.http, head % len(GOOD) + GOOD + last)
    assert back.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert b'"data":[1.5,2.0]' in back


def test_paths_in_full_with_queries_and_heads(running: Running) -> None:
    back = round_trip(running.http, b"GET http://x/v2/health/live?a=b HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert back.startswith(b"HTTP/1.1 200 OK\r\n")
    back = round_trip(running.http, b"HEAD /v2 HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert back.startswith(b"HTTP/1.1 405 ")
    assert back.endswith(b"\r\n\r\n")


def test_expect_continue(running: Running) -> None:
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(GOOD)
    with socket.create_connection(("127.0.0.1", running.http), timeout=60) as connection:
        connection.sendall(head)
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(GOOD)
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")


async def test_a_port_in_use_is_named_by_its_flag(running: Running) -> None:
    options = http_frontend.HttpOptions(host="127.0.0.1", port=running.http)
    with pytest.raises(ServingError, match=f"--http-port {running.http} is in use"):
        await http_frontend.serve(running.plane, options)


async def test_drain_lets_requests_finish_and_then_cancels(running: Running) -> None:
    plane = running.plane
    options = http_frontend.HttpOptions(host="127.0.0.1", port=0)
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [1]}]}

    async def ask(port: int) -> httpx.Response:
        async with httpx.AsyncClient() as client:
            return await client.post(f"http://127.0.0.1:{port}/v2/models/slow/infer", json=body, timeout=10)

    for timeout_s, status in ((5.0, 200), (0.01, 503)):
        plane.reset()
        listener = await http_frontend.serve(plane, options)
        pending = asyncio.create_task(ask(listener.port))
        assert await asyncio.to_thread(plane.started.wait, 5)
        stopping = asyncio.create_task(listener.stop(timeout_s))
        if status == 200:
            plane.released.set()
        assert (await pending).status_code == status
        await stopping

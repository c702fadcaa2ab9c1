"""generate_stream where something goes wrong: what JSON cannot carry, and clients that do not read."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest
from tests.runtime.frontends.conftest import FakePlane

from argosy_runtime.frontends.http import app as http_frontend
from argosy_runtime.frontends.http.app import HttpOptions
from argosy_runtime.frontends.http.wire.listener import HttpListener
from argosy_runtime.frontends.http.wire.timeouts import Timeouts
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.tensors import Tensor

LARGE = 1 << 14


class Flow:
    """Delivers responses as fast as it may, one a turn of the loop."""

    def __init__(self, responses: Iterator[InferResponse], deliver: Deliver) -> None:
        self.delivered = 0
        self.paused = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._responses = responses
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._next)

    def _next(self) -> None:
        if self.paused.is_set() or self.cancelled.is_set():
            return
        response = next(self._responses)
        self.delivered += 1
        self._deliver(response)
        if not response.final:
            self._loop.call_soon(self._next)

    def cancel(self) -> None:
        self.cancelled.set()

    def pause(self) -> None:
        self.paused.set()

    def resume(self) -> None:
        self.paused.clear()
        self._loop.call_soon(self._next)


class StreamPlane(FakePlane):
    """`text` answers what a test says."""

    answers: list[Tensor | None]

    def __init__(self) -> None:
        super().__init__()
        self.flow: asyncio.Future[Flow] = asyncio.get_running_loop().create_future()

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        flow = Flow(self._made(), deliver)
        self.flow.set_result(flow)
        return flow

    def _made(self) -> Iterator[InferResponse]:
        for tensor in self.answers:
            outputs = None if tensor is None else [tensor]
            yield InferResponse("text", "1", "", outputs, final=False)
        yield InferResponse("text", "1", "")


async def _serve(timeouts: Timeouts) -> AsyncIterator[tuple[StreamPlane, HttpListener]]:
    plane = StreamPlane()
    listener = await http_frontend.serve(plane, HttpOptions(host="127.0.0.1", port=0, timeouts=timeouts))
    yield plane, listener
    await listener.stop(0.1)


@pytest.fixture
async def served() -> AsyncIterator[tuple[StreamPlane, HttpListener]]:
    async for serving in _serve(Timeouts()):
        yield serving


@pytest.fixture
async def impatient() -> AsyncIterator[tuple[StreamPlane, HttpListener]]:
    async for serving in _serve(Timeouts(head=0.1, body=0.1, idle=0.1)):
        yield serving


BODY = b'{"text":"x"}'
ASK = b"POST /v2/models/text/%b HTTP/1.1\r\nConnection: close\r\nContent-Length: 12\r\n\r\n%b"
HALF = Tensor("OUT", "FP16", np.zeros(1, np.float16))
COMPLETE = Tensor("OUT", "FP32", np.ones(1, np.float32))
REFUSED = b'{"error":"sending FP16 data via JSON is not supported. Please use the binary data format for output"}'


async def ask(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    back = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return back


async def test_an_output_that_json_cannot_carry_is_an_error_status(served: tuple[StreamPlane, HttpListener]) -> None:
    plane, listener = served
    plane.answers = [HALF]
    back = await ask(listener.port, ASK % (b"generate_stream", BODY))
    assert back.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"data: " + REFUSED + b"\n\n" in back
    assert back.endswith(b"0\r\n\r\n")


async def test_later_in_a_stream_it_is_an_event_and_the_stream_goes_on(
    served: tuple[StreamPlane, HttpListener],
) -> None:
    plane, listener = served
    plane.answers = [COMPLETE, HALF, COMPLETE]
    back = await ask(listener.port, ASK % (b"generate_stream", BODY))
    assert back.startswith(b"HTTP/1.1 200 OK\r\n")
    assert back.count(b'"OUT":1.0') == 2
    assert b"data: " + REFUSED + b"\n\n" in back
    assert back.endswith(b"0\r\n\r\n")


async def test_generate_tells_of_it_too(served: tuple[StreamPlane, HttpListener]) -> None:
    plane, listener = served
    plane.answers = [HALF]
    back = await ask(listener.port, ASK % (b"generate", BODY))
    assert back.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert back.endswith(REFUSED)


async def test_a_model_waits_for_a_client_that_does_not_read(impatient: tuple[StreamPlane, HttpListener]) -> None:
    plane, listener = impatient
    count = 4000
    plane.answers = [Tensor("OUT", "FP32", np.ones(LARGE // 4, np.float32))] * count
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", listener.port))
        await loop.sock_sendall(client, ASK % (b"generate_stream", BODY))
        flow = await plane.flow
        await asyncio.wait_for(flow.paused.wait(), 60)
        # It is not told to go on before the client reads; one who never does is cut off in the end.
        assert flow.delivered < count
        await asyncio.wait_for(flow.cancelled.wait(), 60)
    assert flow.delivered < count


async def test_a_slow_stream_arrives_complete(served: tuple[StreamPlane, HttpListener]) -> None:
    plane, listener = served
    plane.answers = [Tensor("OUT", "FP32", np.ones(LARGE // 4, np.float32))] * 1000
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1 << 12)
    writer.write(ASK % (b"generate_stream", BODY))
    flow = await plane.flow
    await asyncio.wait_for(flow.paused.wait(), 60)
    back = b"".join([piece async for piece in _pieces(reader)])
    assert back.count(b"data: ") == 1000
    assert back.endswith(b"0\r\n\r\n")
    writer.close()


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await asyncio.wait_for(reader.read(1 << 20), 60):
        yield piece


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"POST /v2/models/text/infer HTTP/1.1\r\n", b"HTTP/1.1 408 Request Timeout\r\n"),
        (b"POST /v2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nx", b"HTTP/1.1 408 Request Timeout\r\n"),
        (b"", b""),
    ],
)
async def test_a_client_that_says_no_more_is_abandoned(
    impatient: tuple[StreamPlane, HttpListener], sent: bytes, message: bytes
) -> None:
    back = await ask(impatient[1].port, sent)
    assert back.startswith(message)
    assert bool(back) is bool(message)

"""Clients without a network: a protocol object of the front end each, the bytes that real clients send, a transport."""

import json
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Protocol

import hpack
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.frontends.grpc.inference import Inference
from argosy_runtime.frontends.grpc.listener import methods
from argosy_runtime.frontends.grpc.rpc.router import Router
from argosy_runtime.frontends.grpc.rpc.unary import Tasks
from argosy_runtime.frontends.http.app import HttpApp, HttpOptions
from argosy_runtime.frontends.http.wire.connection import Connection
from argosy_runtime.frontends.http.wire.head_cache import HeadCache
from argosy_runtime.http2 import Http2Protocol, KeepAliveRules, Limits, frames

from .trace import FRONT_IN, OWN, Trace

TENSOR = b"sixty-four bytes" * 4
_SHAPE = [1, 16]
_MAX_BODY = 1 << 26


class Clients(Protocol):
    """Clients that send one request each, at once, and wait for their answers."""

    def send(self) -> None:
        """Let all clients send. Raises RuntimeError where a client has no answer to its last request."""


class Loop:
    """What the front ends ask of an event loop. What is to be called soon is called by `run`."""

    time = staticmethod(monotonic)

    def __init__(self) -> None:
        self._soon: list[Callable[[], None]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self._soon.append(call)

    def call_later(self, delay: float, call: Callable[[], None]) -> "_Never":
        """Return a handle that is never called."""
        return _Never()

    def run(self) -> None:
        """Run one pass."""
        soon, self._soon = self._soon, []
        for call in soon:
            call()


class _Never:
    def cancel(self) -> None:
        """Do nothing."""


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.write = self.written.append

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> None:
        """Do nothing."""

    def check(self, answers: int) -> None:
        """Forget what was written: so many answers. Raises RuntimeError where it is something else."""
        came = b"".join(self.written)
        self.written.clear()
        if came.count(TENSOR) != answers:
            raise RuntimeError(f"{came[:500]!r} instead of {answers} answers")


class HttpClients:
    """A connection each."""

    def __init__(self, heads: HeadCache, count: int, trace: Trace) -> None:
        self._trace = trace
        self._waiting = False
        self._transports = [Transport() for _ in range(count)]
        self._request = _http_request()
        self._connections = []
        for transport in self._transports:
            connection = Connection(heads, set(), _MAX_BODY, False, monotonic)
            connection.connection_made(transport)  # type: ignore[arg-type]  # a stand-in for a socket
            self._connections.append(connection)

    def send(self) -> None:
        for transport in self._transports if self._waiting else ():
            transport.check(1)
        self._waiting = True
        for connection in self._connections:
            self._trace.enter(FRONT_IN)
            connection.data_received(self._request)
            self._trace.enter(OWN)


class GrpcClients:
    """A stream each of one connection, whose requests come in one read."""

    def __init__(self, router: Router, count: int, trace: Trace, loop: Any) -> None:
        self._trace = trace
        self._count = count
        self._sent = 0
        self._transport = Transport()
        self._protocol = Http2Protocol(router, loop, lambda _: None, Limits(), KeepAliveRules())
        self._protocol.connection_made(self._transport)  # type: ignore[arg-type]  # a stand-in for a socket
        window = frames.window_update(0, frames.MAX_WINDOW - frames.DEFAULT_WINDOW)
        self._protocol.data_received(frames.PREFACE + frames.settings(()) + window)
        self._encoder = hpack.Encoder()
        self._message = _grpc_message()
        loop.run()
        self._transport.check(0)

    def send(self) -> None:
        self._transport.check(self._count if self._sent else 0)
        data = b"".join(self._one(2 * number + 1) for number in range(self._sent, self._sent + self._count))
        self._sent += self._count
        self._trace.enter(FRONT_IN)
        self._protocol.data_received(data)
        self._trace.enter(OWN)

    def _one(self, stream: int) -> bytes:
        # From the second one on each field is an index, as in real clients.
        block = self._encoder.encode(_FIELDS, huffman=False)
        head = frames.frame(frames.HEADERS, frames.END_HEADERS, stream, block)
        return head + frames.frame(frames.DATA, frames.END_STREAM, stream, self._message)


_FIELDS = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
    (b":authority", b"localhost:8001"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
    (b"user-agent", b"grpc-c++/1.54.3 grpc-c/31.0.0 (linux; chttp2)"),
    (b"grpc-accept-encoding", b"identity, deflate, gzip"),
)


def clients(protocol: str, counts: Iterable[int], plane: Any, trace: Trace, loop: Any) -> list[Clients]:
    """Return groups of so many clients, of one server, by "http" or "grpc"."""
    if protocol == "http":
        heads = HeadCache(HttpApp(plane, HttpOptions()))
        return [HttpClients(heads, count, trace) for count in counts]
    router = Router(methods(plane, Inference(plane, ""), Tasks(loop)), {}, loop)
    return [GrpcClients(router, count, trace, loop) for count in counts]


def _http_request() -> bytes:
    tensor = {"name": "INPUT0", "shape": _SHAPE, "datatype": "FP32", "parameters": {"binary_data_size": len(TENSOR)}}
    output = {"name": "OUTPUT0", "parameters": {"binary_data": True}}
    text = json.dumps({"id": "7", "inputs": [tensor], "outputs": [output]}, separators=(",", ":")).encode()
    head = (
        "POST /v2/models/identity/infer HTTP/1.1\r\nHost: localhost:8000\r\nAccept: */*\r\n"
        "Content-Type: application/octet-stream\r\n"
        f"Inference-Header-Content-Length: {len(text)}\r\nContent-Length: {len(text) + len(TENSOR)}\r\n\r\n"
    )
    return head.encode() + text + TENSOR


def _grpc_message() -> bytes:
    request = pb.ModelInferRequest(model_name="identity", id="7", raw_input_contents=[TENSOR])
    request.inputs.add(name="INPUT0", datatype="FP32", shape=_SHAPE)
    request.outputs.add(name="OUTPUT0")
    message: bytes = request.SerializeToString()
    return b"\0" + len(message).to_bytes(4, "big") + message

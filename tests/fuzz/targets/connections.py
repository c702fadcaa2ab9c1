"""Whole connections: bytes of a client in pieces, through a front end to the fake data plane."""

import functools
from collections.abc import Iterator

from tests.fuzz import frontends
from tests.fuzz.oracles import pieces
from tests.fuzz.seeds import grpc_messages, http_bytes, http_calls
from tests.fuzz.target import Target
from tests.runtime.frontends.http.wire import Wire
from tests.runtime.http2.playing import Play

from argosy_runtime.frontends.grpc.listener import GrpcListener, GrpcListenOptions
from argosy_runtime.frontends.http.app import HttpApp, HttpOptions
from argosy_runtime.http2 import KeepAliveRules, Limits, encode, frames
from argosy_runtime.http2.connection import Connection

LIMIT = 1 << 16
_ANY_PINGS = KeepAliveRules(max_ping_strikes=0)
_METHOD = "/inference.GRPCInferenceService/"
_MODELS = {b"/identity/": b"/echo/", b"/text/": b"/text/", b"INPUT0": b"IN"}


def http(data: bytes) -> None:
    """Send a connection's bytes to the HTTP front end. The first byte is the size of their pieces, 0 for one piece."""
    with frontends.no_faults():
        frontends.run(_http(data[1:], (data or b"\0")[0]))


@functools.cache
def _http_app() -> tuple[frontends.Plane, HttpApp]:
    plane = frontends.Plane()
    return plane, HttpApp(plane, HttpOptions(max_input_size=LIMIT, header_forward_pattern="^fwd-"))


async def _http(data: bytes, size: int) -> None:
    plane, app = _http_app()
    plane.reset()
    wire = Wire(app, max_body=LIMIT)
    for piece in pieces(data, size or len(data) or 1):
        if not wire.closed:
            wire.feed(piece)
    await frontends.turns()
    assert not wire.written or wire.written.startswith(b"HTTP/1.")
    wire.close()
    await frontends.turns()
    assert not wire.connections


def _http_seeds() -> Iterator[bytes]:
    for number, call in enumerate(http_calls()):
        request = http_bytes(call)
        for name, other in _MODELS.items():
            request = request.replace(name, other)
        yield bytes([(0, 0, 50)[number % 3]]) + request
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield b"\x07" + head + b"5;a=b\r\nabcde\r\n0\r\nT: x\r\n\r\nGET /v2 HTTP/1.1\r\n\r\n"


def http2(data: bytes) -> None:
    """Send a connection's bytes to the HTTP/2 protocol. The first byte is the size of their pieces, 0 for one piece."""
    size, data = (data or b"\0")[0], data[1:]
    play = Play(rules=_ANY_PINGS)
    for piece in pieces(data, size or len(data) or 1):
        play.feed(piece)
        play.output()
    if play.server.closing:
        assert frames.head(frames.GOAWAY, 0, 0, 8)[3:4] in play.sent
    play.server.lose()
    assert not play.server.streams
    assert not play.server.output.blocked
    assert all(receiver.resets <= 1 for receiver in play.application.opened)


def _http2_seeds() -> Iterator[bytes]:
    for size, path in ((0, "/echo"), (9, "/stream"), (50, "/echo")):
        play = Play(rules=_ANY_PINGS)
        stream = play.ask(path, b"abc")
        play.ask(path, None)
        play.client.ping(b"12345678")
        play.client.increment_flow_control_window(10, stream)
        play.client.reset_stream(stream + 2)
        yield bytes([size]) + play.client.data_to_send()


@functools.cache
def _listener() -> tuple[frontends.Plane, GrpcListener]:
    plane = frontends.Plane()
    return plane, GrpcListener(plane, GrpcListenOptions(header_forward_pattern="^fwd-", max_input_size=LIMIT))


def grpc(data: bytes) -> None:
    """Make a call: lines with its method and its metadata, an empty line, and the messages as they go over a stream."""
    with frontends.no_faults():
        frontends.run(_grpc(data))


async def _grpc(data: bytes) -> None:
    head, _, body = data.partition(b"\n\n")
    path, *lines = head.split(b"\n")
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b"content-type", b"application/grpc")]
    fields += [(name, value) for name, _, value in (line.partition(b":") for line in lines)]
    block = encode(fields)
    plane, listener = _listener()
    plane.reset()
    server = Connection(listener._router, Limits(), _ANY_PINGS, lambda: None, 0.0)
    server.begin()
    sent = frames.head(frames.HEADERS, frames.END_HEADERS, 1, len(block)) + block
    sent += frames.head(frames.DATA, frames.END_STREAM, 1, len(body)) + body
    server.receive(frames.PREFACE + frames.head(frames.SETTINGS, 0, 0, 0) + sent, 0.0)
    await frontends.turns()
    server.output.take()
    server.lose()
    await frontends.turns()
    assert not server.streams


def _grpc_seeds() -> Iterator[bytes]:
    for name, message in grpc_messages():
        if name == "ModelInfer":
            message.model_name = {"identity": "echo"}.get(message.model_name, message.model_name)
        body = message.SerializeToString()
        yield f"{_METHOD}{name}\n\n".encode() + b"\0" + len(body).to_bytes(4, "big") + body
    yield f"{_METHOD}ServerLive\ngrpc-timeout:1H\ngrpc-encoding:gzip\nfwd-bin:AAE\n\n".encode() + bytes(5)
    yield b"/grpc.health.v1.Health/Watch\n\n" + bytes(5)
    yield b"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo\n\n\0\0\0\0\x02\x3a\0"


TARGETS = [
    Target("http-connections", http, _http_seeds),
    Target("http2-connections", http2, _http2_seeds),
    Target("grpc-calls", grpc, _grpc_seeds),
]

"""The connection on real sockets: one write a pass, TLS with ALPN, timers, clients that do not read."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, TrailersReceived
from h2.settings import SettingCodes
from tests.waiting import until

from argosy_runtime.http2 import ErrorCode, Http2Protocol, KeepAliveRules, Limits, frames

from .playing import EchoApplication, head


class Server:
    """A listening server of one application; `gone` is set when a client's connection ends."""

    def __init__(self, rules: KeepAliveRules) -> None:
        self.application = EchoApplication()
        self.rules = rules
        self.protocols: list[Http2Protocol] = []
        self.gone = asyncio.Event()
        self.port = 0

    def protocol(self) -> Http2Protocol:
        loop = asyncio.get_running_loop()
        protocol = Http2Protocol(self.application, loop, lambda _: self.gone.set(), Limits(), self.rules)
        self.protocols.append(protocol)
        return protocol


@contextlib.asynccontextmanager
async def serving(rules: KeepAliveRules | None = None, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(rules or KeepAliveRules())
    listening = await asyncio.get_running_loop().create_server(server.protocol, "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for protocol in server.protocols:
            protocol.abort()


class Client:
    """hyper-h2 on a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self.h2.initiate_connection()

    async def ask(self, body: bytes) -> bytes:
        stream_id = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream_id, head("/echo"))
        for start in range(0, len(body), 10_000):
            self.h2.send_data(stream_id, body[start : start + 10_000])
        self.h2.end_stream(stream_id)
        self.writer.write(self.h2.data_to_send())
        answer = b""
        while True:
            for event in self.h2.receive_data(await self.reader.read(65536)):
                if isinstance(event, DataReceived):
                    answer += event.data
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, TrailersReceived):
                    return answer
            self.writer.write(self.h2.data_to_send())


@contextlib.asynccontextmanager
async def connected(server: Server, context: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    name = "localhost" if context else None
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context, server_hostname=name)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def test_requests_over_a_socket() -> None:
    async with serving() as server, connected(server) as client:
        assert await client.ask(b"hello") == b"hello"
        assert await client.ask(b"x" * 60_000) == b"x" * 60_000


async def test_a_lost_client_is_reported_once() -> None:
    async with serving() as server:
        server.application.waits = True
        async with connected(server) as client:
            client.h2.send_headers(1, head("/echo"))
            client.writer.write(client.h2.data_to_send())
            await until(lambda: bool(server.application.opened))
        await asyncio.wait_for(server.gone.wait(), 60)
        assert server.application.opened[0].resets == 1


async def test_a_client_that_does_not_begin_is_closed() -> None:
    async with serving(KeepAliveRules(handshake=0.01)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        data = await asyncio.wait_for(reader.read(), 60)
        assert frames.frame(frames.GOAWAY, 0, 0, b"")[3:4] in data
        writer.close()


async def test_a_silent_client_is_pinged_and_closed() -> None:
    rules = KeepAliveRules(time=0.3, timeout=0.3, permit_without_calls=True)
    async with serving(rules) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(frames.PREFACE + frames.settings([]))
        data = await asyncio.wait_for(reader.read(), 60)
        assert frames.ping(bytes(8)) in data
        writer.close()


async def test_an_idle_client_is_sent_away() -> None:
    async with serving(KeepAliveRules(idle=0.5)) as server, connected(server) as client:
        client.writer.write(client.h2.data_to_send())
        data = await asyncio.wait_for(client.reader.read(), 60)
        assert data.endswith(frames.goaway(0, ErrorCode.NO_ERROR))


async def test_a_client_that_never_reads_is_cut_off() -> None:
    async with serving(KeepAliveRules(closing=0.01)) as server:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(deaf, ("127.0.0.1", server.port))
        greeting = frames.PREFACE + frames.settings([(frames.INITIAL_WINDOW_SIZE, 1 << 30)])
        await loop.sock_sendall(deaf, greeting + frames.window_update(0, 1 << 30))
        client = H2Connection(H2Configuration(client_side=True))
        client.initiate_connection()
        client.data_to_send()
        client.send_headers(1, head("/echo"))
        await loop.sock_sendall(deaf, client.data_to_send())
        for _ in range(1000):
            await loop.sock_sendall(deaf, frames.frame(frames.DATA, 0, 1, bytes(16384)))
        await loop.sock_sendall(deaf, frames.frame(frames.DATA, frames.END_STREAM, 1, b""))
        await until(lambda: server.protocols[0].connection.output.paused)
        server.protocols[0].connection.fail(ErrorCode.ENHANCE_YOUR_CALM, "enough")
        await asyncio.wait_for(server.gone.wait(), 60)
        deaf.close()


SCENARIOS = [
    test_requests_over_a_socket,
    test_a_lost_client_is_reported_once,
    test_a_client_that_does_not_begin_is_closed,
    test_a_silent_client_is_pinged_and_closed,
    test_an_idle_client_is_sent_away,
    test_a_client_that_never_reads_is_cut_off,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_same_on_uvloop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """The server runs on it, and its transports are others than asyncio's."""
    uvloop.run(scenario())


def _contexts(certificate: tuple[Path, Path], protocols: list[str]) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    ours = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ours.load_cert_chain(*certificate)
    ours.set_alpn_protocols(["h2"])
    theirs = ssl.create_default_context(cafile=str(certificate[0]))
    theirs.set_alpn_protocols(protocols)
    return ours, theirs


async def test_over_tls(certificate: tuple[Path, Path]) -> None:
    ours, theirs = _contexts(certificate, ["h2"])
    async with serving(context=ours) as server, connected(server, theirs) as client:
        assert await client.ask(b"x" * 60_000) == b"x" * 60_000


async def test_over_tls_a_client_must_have_agreed_on_http2(certificate: tuple[Path, Path]) -> None:
    ours, theirs = _contexts(certificate, ["http/1.1"])
    async with serving(context=ours) as server:
        await _ends(lambda: _ask_over(server, theirs))
        await asyncio.wait_for(server.gone.wait(), 60)
        assert not server.application.opened


@pytest.mark.parametrize("scenario", [test_over_tls, test_over_tls_a_client_must_have_agreed_on_http2])
def test_the_same_over_tls_on_uvloop(
    scenario: Callable[[tuple[Path, Path]], Coroutine[Any, Any, None]], certificate: tuple[Path, Path]
) -> None:
    uvloop.run(scenario(certificate))


async def _ask_over(server: Server, context: ssl.SSLContext) -> None:
    async with connected(server, context) as client:
        assert await client.reader.read() == b""


async def _ends(call: Callable[[], Awaitable[None]]) -> None:
    """Run a call after which the connection may end politely or not."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await call()


class Stalled(asyncio.Transport):
    """A transport whose client may stop reading; `unread` bytes are still to be taken."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.aborted = False
        self.cut = asyncio.Event()
        self.unread = 0

    def get_write_buffer_size(self) -> int:
        return self.unread

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.unread += len(data)

    def is_closing(self) -> bool:
        return self.aborted

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.aborted = True
        self.cut.set()


async def test_nothing_is_read_of_a_client_while_it_reads_nothing() -> None:
    loop, transport = asyncio.get_running_loop(), Stalled()
    protocol = Http2Protocol(EchoApplication(), loop, lambda _: None, Limits(), KeepAliveRules())
    protocol.connection_made(transport)
    protocol.pause_writing()
    assert not transport.reading
    protocol.resume_writing()
    assert transport.reading
    protocol.abort()
    protocol.connection_lost(None)
    protocol.pause_writing()
    assert transport.reading


async def test_a_stalled_socket_is_cut_off() -> None:
    loop, transport = asyncio.get_running_loop(), Stalled()
    rules = KeepAliveRules(unread=0.01)
    protocol = Http2Protocol(EchoApplication(), loop, lambda _: None, Limits(), rules)
    protocol.connection_made(transport)
    protocol.pause_writing()
    await asyncio.wait_for(transport.cut.wait(), 60)
    protocol.connection_lost(None)


async def test_a_window_that_stays_shut_ends_its_stream_and_not_the_connection() -> None:
    loop, transport = asyncio.get_running_loop(), Stalled()
    application = EchoApplication()
    protocol = Http2Protocol(application, loop, lambda _: None, Limits(), KeepAliveRules(unread=0.01))
    protocol.connection_made(transport)
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    client.send_headers(1, head("/echo"))
    client.send_data(1, b"hello", end_stream=True)
    protocol.data_received(client.data_to_send())
    await until(lambda: application.opened[0].resets == 1)
    assert not transport.aborted
    assert not protocol.connection.closing
    assert not protocol.connection.streams
    protocol.connection_lost(None)

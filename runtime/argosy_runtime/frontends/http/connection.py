"""One HTTP/1.1 connection: httptools parses, an application answers, one request after the other."""

import asyncio
import logging
from collections import deque
from http import HTTPStatus

import httptools

from .exchange import Application, Call, Headers, Reply, message_reply

_log = logging.getLogger(__name__)
MAX_HEAD_BYTES = 1 << 16
# Above this many bytes a body is handed to the transport in pieces, and not joined first.
_JOIN_BYTES = 1 << 16
# A body that says how it is made up may be longer than what is parsed at once.
_UNBOUNDED = b"inference-header-content-length"
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class Connection(asyncio.Protocol):
    """The server's side of a connection. It enters itself into `connections` and leaves in the end.

    Its application is cancelled when the client hangs up. Bodies above `max_body` bytes are counted, not kept.
    """

    def __init__(
        self, app: Application, connections: "set[Connection]", max_body: int, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.closed: asyncio.Future[None] = loop.create_future()
        self._app = app
        self._connections = connections
        self._max_body = max_body
        self._loop = loop
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._writable: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[tuple[Call, _Response]] = deque()
        self._draining = False
        self._finishing = False
        self.on_message_begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        if self._writable is not None:
            self._writable.set()
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._finishing:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_offer(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse("Invalid HTTP request received")

    def pause_writing(self) -> None:
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def drain(self) -> None:
        """Close with the next answer that no further request waits behind."""
        self._draining = True

    @property
    def is_last(self) -> bool:
        """Whether an answer that begins now is this connection's last."""
        return self._finishing or (self._draining and not self._waiting)

    def finish(self) -> None:
        """Close once the request in flight, if there is one, is answered."""
        self._finishing = True
        self._waiting.clear()
        if self._task is None:
            self._transport.close()

    def cancel(self) -> None:
        """Cancel the request in flight."""
        if self._task is not None:
            self._task.cancel()

    def abort(self) -> None:
        """Cut the connection."""
        self._transport.abort()

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._head_size = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._limit = self._max_body

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value
        self._count_head(len(name) + len(value))

    def on_headers_complete(self) -> None:
        if b"expect" in self._headers and self._headers[b"expect"].lower() == b"100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if _UNBOUNDED in self._headers:
            self._limit = -1

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if 0 <= self._limit < self._size:
            self._pieces.clear()
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        method = self._parser.get_method().decode("latin-1")
        version = self._parser.get_http_version()
        keep_alive = self._parser.should_keep_alive()
        response = _Response(self, version == "1.0", keep_alive, method == "HEAD")
        call = Call(method, _path(self._url), self._headers, body, self._size, response)
        if self._task is None:
            self._begin(call, response)
        else:
            self._waiting.append((call, response))
            self._transport.pause_reading()

    def _read_without_offer(self, rest: bytes) -> None:
        """Read a request again that offers to speak another protocol, without its offer.

        The parser takes what follows such a head for the other protocol's; here it is the body.
        """
        method = self._parser.get_method()
        headers = [
            b"%b: %b\r\n" % header for header in self._headers.items() if header[0] not in (b"upgrade", b"connection")
        ]
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(b"".join([method, b" ", self._url, b" HTTP/1.1\r\n", *headers, b"\r\n", rest]))

    def _count_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > MAX_HEAD_BYTES:
            raise ValueError("request head too large")

    # Answering.

    def _begin(self, call: Call, response: "_Response") -> None:
        self._task = self._loop.create_task(self._answer(call, response))

    async def _answer(self, call: Call, response: "_Response") -> None:
        try:
            reply = await self._app(call)
        except asyncio.CancelledError:
            reply = message_reply(503, "the server is shutting down")
        except Exception as error:
            _log.exception("%s %s failed", call.method, call.path)
            reply = message_reply(500, f"unexpected {type(error).__name__} in the HTTP front end")
        self._task = None
        if self._transport.is_closing():
            return
        if reply is not None and not response.started:
            keep_alive = response.keep_alive and not self.is_last
            response.send(reply, keep_alive)
        else:
            keep_alive = response.keep_alive and response.ended and not self._finishing
        if not keep_alive:
            self._transport.close()
        elif self._waiting:
            self._begin(*self._waiting.popleft())
            if not self._waiting:
                self._transport.resume_reading()

    def _refuse(self, message: str) -> None:
        """Answer what is no HTTP, unless a request before it is still being answered."""
        if self._task is None:
            _Response(self, False, False, False).send(message_reply(400, message), False)
        self._transport.close()

    def put(self, pieces: list[bytes], size: int) -> None:
        """Write pieces of `size` bytes altogether."""
        if size <= _JOIN_BYTES:
            self._transport.write(b"".join(pieces))
        else:
            self._transport.writelines(pieces)

    async def drained(self) -> None:
        """Wait while the client is behind with reading."""
        if self._writable is not None:
            await self._writable.wait()


class _Response:
    """The response to one request, whole or as a stream."""

    __slots__ = ("_chunked", "_connection", "_old", "_only_head", "ended", "keep_alive", "started")

    def __init__(self, connection: Connection, old: bool, keep_alive: bool, only_head: bool) -> None:
        self._connection = connection
        self._old = old
        self._only_head = only_head
        self._chunked = False
        self.keep_alive = keep_alive
        self.started = False
        self.ended = False

    def send(self, reply: Reply, keep_alive: bool) -> None:
        """Send a whole response."""
        length = sum(map(len, reply.chunks))
        head = self._head(reply.status, reply.headers, f"Content-Length: {length}\r\n", keep_alive)
        self.started = self.ended = True
        pieces = [head] if self._only_head else [head, *reply.chunks]
        self._connection.put(pieces, length)

    def start(self, status: int, headers: Headers) -> None:
        """Begin a stream: chunked, or to an HTTP/1.0 client until the connection closes."""
        self.started = True
        self._chunked = not self._old
        self.keep_alive = self.keep_alive and self._chunked and not self._connection.is_last
        framing = "Transfer-Encoding: chunked\r\n" if self._chunked else ""
        self._connection.put([self._head(status, headers, framing, self.keep_alive)], 0)

    async def write(self, chunk: bytes) -> None:
        """Send a piece of the stream."""
        framed = [b"%x\r\n" % len(chunk), chunk, b"\r\n"] if self._chunked else [chunk]
        self._connection.put(framed, len(chunk))
        await self._connection.drained()

    def end(self) -> None:
        """End the stream."""
        self.ended = True
        if self._chunked:
            self._connection.put([b"0\r\n\r\n"], 5)

    def _head(self, status: int, headers: Headers, framing: str, keep_alive: bool) -> bytes:
        if not keep_alive:
            framing += "Connection: close\r\n"
        elif self._old:
            framing += "Connection: keep-alive\r\n"
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
        return _STATUS_LINES[status] + f"{lines}{framing}\r\n".encode("latin-1")


def _path(url: bytes) -> str:
    if not url.startswith(b"/"):
        url = httptools.parse_url(url).path or b"/" if b"://" in url else url
    return url.partition(b"?")[0].decode("latin-1")

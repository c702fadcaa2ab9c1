"""One HTTP/1.1 connection: bytes become requests, an application answers them, one after the other."""

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import Final, cast

from argosy_runtime.protocol.http.request import MOST_LENGTH, length_out_of_range
from argosy_runtime.tensors import Data
from argosy_runtime.traces import TRACING

from .bodies import Body, BodyError, ChunkedBody, SizedBody
from .head_cache import HeadCache, RoutedHead
from .heads import MAX_HEAD_BYTES, Head, may_be_head
from .long_body import LongBody
from .reply import message_reply
from .request_context import RequestContext
from .timeouts import Phase, Watch
from .writer import Writer

# A body of which more bytes than this are missing is read into a buffer of its own.
_LONG_BODY: Final = 1 << 16
# Seconds after its request in which a client that ends its side still waits for the answer; later it has hung up.
_HALF_CLOSE_S: Final = 0.25
_EMPTY_LINES: Final = b"\r\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_NOT_HTTP: Final = "Invalid HTTP request received"
_TOO_SLOW: Final = "the request did not come in time"
_TOO_LARGE: Final = "there is no memory for the request's body"
_NO_HTTP_HEAD: Final = Head("GET", "/", {}, keep_alive=False)


class Connection(asyncio.Protocol):
    """The server's side of a connection. It adds itself to `connections`, and removes itself in the end.

    The request in flight is cancelled when the client hangs up. Bodies above `max_body` bytes are counted, not kept.
    While a request is being answered, or the client does not read, nothing more is read. `clock` returns seconds.
    """

    def __init__(
        self,
        heads: HeadCache,
        connections: "set[Connection]",
        max_body: int,
        draining: bool,
        clock: Callable[[], float],
    ) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.watch = Watch()
        self.progress = 0
        self._heads = heads
        self._connections = connections
        self._max_body = max_body
        self._draining = draining
        self._clock = clock
        self._begun_at = 0.0
        self._answered_at = 0.0
        self._half_closed = False
        self._may_half_close = True
        self._transport: asyncio.Transport
        self._writer: Writer
        self._context: RequestContext | None = None
        self._ended = self._context_ended
        self._reading = False
        self._paused = False
        # Bytes that belong to no request yet.
        self._ahead = b""
        # When the request whose body is coming began to come, if that is traced.
        self._received = 0
        # The request whose body is coming.
        self._coming: RoutedHead | None = None
        self._body: Body | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's are transports and do not say so.
        self._transport = cast(asyncio.Transport, transport)
        # TLS has no connection of which one side is closed.
        self._may_half_close = transport.get_extra_info("sslcontext") is None
        self._writer = Writer(self._transport)
        self._writer.draining = self._draining
        self._begun_at = self._answered_at = self._clock()
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._writer.lost = True
        self._writer.resume()
        self._drop()
        context, self._context = self._context, None
        if context is not None:
            context.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._writer.finishing:
            return
        if self._coming is None:
            self._ahead = self._ahead + data if self._ahead else data
            self._writer.more = True
        else:
            self._feed(data)
        self._read()

    def eof_received(self) -> bool:
        """Return whether to keep the connection for the answer that is due, in case the client still reads.

        A client that has closed its socket ends its side just as one that still reads; the latter does so directly
        after its last request. Transports call this again whenever reading goes on.
        """
        if self._half_closed:
            return self._context is not None
        overdue = self._clock() - self._begun_at > _HALF_CLOSE_S
        if self._context is None or overdue or not self._may_half_close:
            return False
        self._half_closed = True
        self._writer.draining = True
        return True

    def pause_writing(self) -> None:
        self._writer.pause()
        self._read()

    def resume_writing(self) -> None:
        self._writer.resume()
        self._read()

    def drain(self) -> None:
        """Close with the next answer, unless a further request waits behind it."""
        self._writer.draining = True
        self._answered_at = self._begun_at

    def expects(self, now: float, reuse_s: float) -> bool:
        """Return whether a request is under way, or the client has used this connection, or opened it, less than
        `reuse_s` seconds ago. `now` is of the connection's clock. To be called after `drain`.
        """
        return self.phase is not Phase.IDLE or now - self._answered_at < reuse_s

    def finish(self) -> None:
        """Close once the request in flight, if there is one, is answered."""
        self._writer.finishing = True
        self._drop()
        if self._context is None:
            self._transport.close()

    def cancel(self) -> None:
        """Cancel the request in flight, and answer that the server shuts down."""
        context = self._context
        if context is not None:
            context.cancel()
            context.stop()

    def abort(self) -> None:
        """Abort the connection."""
        self._transport.abort()

    @property
    def phase(self) -> Phase:
        """What this connection is waiting for."""
        if self._writer.paused:
            return Phase.WRITING
        if self._context is not None:
            return Phase.HALF_CLOSED if self._half_closed and not self._context.started else Phase.ANSWERING
        if self._coming is not None:
            return Phase.BODY
        if self._ahead:
            return Phase.HEAD
        return Phase.WRITING if self.unread else Phase.IDLE

    @property
    def unread(self) -> int:
        """How many bytes of answers the client has still to take."""
        return self._transport.get_write_buffer_size()

    def give_up(self) -> None:
        """End a connection that has waited for its client too long."""
        phase = self.phase
        if phase is Phase.WRITING or phase is Phase.HALF_CLOSED:
            self._transport.abort()
        elif phase is Phase.IDLE:
            self._transport.close()
        else:
            self._refuse(408, _TOO_SLOW)

    # Reading.

    def _read(self) -> None:
        """Begin the requests that have come, one after the other as they are answered."""
        if self._reading:
            return
        self._reading = True
        while self._context is None and self._ahead and not (self._writer.finishing or self._writer.paused):
            if not self._read_one():
                break
        self._reading = False
        pause = self._writer.paused or bool(self._ahead and self._context is not None)
        if pause == self._paused or self._writer.lost or self._transport.is_closing():
            return
        self._paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _read_one(self) -> bool:
        """Take the next head, and what has come of its body. Return False where more must come."""
        data = self._ahead
        if data[0] in _EMPTY_LINES:
            data = self._ahead = data.lstrip(_EMPTY_LINES)
        end = data.find(b"\r\n\r\n") + 4
        if end < 4 or end > MAX_HEAD_BYTES:
            if data and not may_be_head(data[: MAX_HEAD_BYTES + 1]):
                self._refuse(400, _NOT_HTTP)
            return False
        routed = self._heads.find(data[:end])
        if routed is None:
            self._refuse(400, _NOT_HTTP)
            return False
        size = routed.head.length
        missing = end + size - len(data)
        if routed.head.chunked or missing > 0 or size > self._max_body:
            self._ahead = b""
            self._begin_body(routed, data[end:])
        elif missing:
            self._ahead = data[missing:]
            self._begin(routed, data[:missing], end, size)
        else:
            self._ahead = b""
            self._begin(routed, data, end, size)
        return True

    def _begin_body(self, routed: RoutedHead, begun: bytes) -> None:
        """Begin a body that is incomplete, or too long to be kept."""
        if TRACING.on:
            self._received = monotonic_ns()
        head = routed.head
        if head.length > MOST_LENGTH:
            self._refuse(400, length_out_of_range("Content-Length", str(head.length)))
            return
        limit = -1 if head.unbounded else self._max_body
        missing = head.length - len(begun)
        self._coming = routed
        if head.expects and (head.chunked or missing > 0):
            self._writer.write(_CONTINUE)
        if head.chunked:
            self._body = ChunkedBody(limit)
        elif missing > _LONG_BODY and (limit < 0 or head.length <= limit):
            self._begin_long_body(head.length, begun)
            return
        else:
            self._body = SizedBody(head.length, limit)
        self._feed(begun)

    def _begin_long_body(self, length: int, begun: bytes) -> None:
        try:
            body = LongBody(self, length, begun, self._long_body_received)
        except MemoryError:
            self._refuse(413, _TOO_LARGE)
        else:
            self._transport.set_protocol(body)

    def _feed(self, data: bytes) -> None:
        """Take more of a body, and begin its request once it is complete."""
        routed, body = self._coming, self._body
        assert routed is not None
        assert body is not None
        self.progress += 1
        try:
            rest = body.feed(data)
        except BodyError as error:
            self._refuse(400, str(error) or _NOT_HTTP)
            return
        if rest is not None:
            self._coming = self._body = None
            self._ahead = rest
            self._begin(routed, body.content(), 0, body.size)

    def _long_body_received(self, body: memoryview | None) -> None:
        """Count a piece of a long body, and begin its request once it is complete."""
        self.progress += 1
        if body is None:
            return
        routed = self._coming
        self._transport.set_protocol(self)
        if routed is not None:
            self._coming = None
            self._begin(routed, body, 0, routed.head.length)

    def _drop(self) -> None:
        """Drop the bytes of requests that have not begun."""
        self._ahead = b""
        self._coming = self._body = None

    # Answering.

    def _begin(self, routed: RoutedHead, data: Data, begin: int, size: int) -> None:
        """Have the handler answer a complete request."""
        self.progress += 1
        context = RequestContext(routed.head, data, begin, size, self._writer, self._ended)
        if TRACING.on or self._received:
            context.received, self._received = self._received or monotonic_ns(), 0
        self._context = context
        self._writer.more = bool(self._ahead)
        try:
            routed.handler.begin(context)
        except Exception as error:
            context.fail(error)
        self._begun_at = self._clock()

    def _context_ended(self, context: RequestContext) -> None:
        if context is not self._context:
            return
        self._context = None
        if self._writer.draining:
            self._answered_at = self._clock()
        if self._writer.finishing or not context.keep_alive:
            self._writer.finishing = True
            self._transport.close()
        elif self._ahead:
            self._read()
        if self._half_closed and self._context is None and not self._transport.is_closing():
            self._transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answer a malformed or incomplete request with an error, and close."""
        self._drop()
        self._writer.finishing = True
        RequestContext(_NO_HTTP_HEAD, b"", 0, 0, self._writer, self._ended).reply(message_reply(status, message))
        self._transport.close()

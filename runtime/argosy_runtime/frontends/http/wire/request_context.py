"""One HTTP request as its handler sees it, and the methods that answer it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from argosy_runtime.errors import invalid
from argosy_runtime.protocol.http.request import too_long
from argosy_runtime.tensors import Data

from .heads import Head
from .reply import Headers, Reply, head_bytes, message_reply
from .writer import Source, Writer

_log = logging.getLogger(__name__)
_CLOSE: Final = b"Connection: close\r\n"
_KEEP_ALIVE: Final = b"Connection: keep-alive\r\n"
_CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"


class Work(Protocol):
    """The work on a request: a task or a submission."""

    def cancel(self) -> object:
        """Stop: the client has gone."""


class RequestContext:
    """A request and its one response: by `reply`, by `send`, or by `start`, `write` or `push` … and `end`.

    The body is `data` from `begin` on; `size` is its length in bytes, even where it was too long to be kept. `work` is
    cancelled when the client hangs up. `interrupted` answers, with a status and a message, where the server itself
    cannot go on with the request; None is for a reply in the form of the V2 protocol.
    """

    __slots__ = (
        "_chunked",
        "_ended",
        "_writer",
        "answered",
        "begin",
        "data",
        "head",
        "interrupted",
        "keep_alive",
        "received",
        "size",
        "started",
        "work",
    )

    def __init__(
        self, head: Head, data: Data, begin: int, size: int, writer: Writer, ended: "Callable[[RequestContext], None]"
    ) -> None:
        self.head = head
        self.data: Data = data
        self.begin = begin
        self.size = size
        self.started = False
        self.answered = False
        self.received = 0
        self.keep_alive = True
        self.work: Work | None = None
        self.interrupted: Callable[[int, str], None] | None = None
        self._writer = writer
        self._ended = ended
        self._chunked = False

    @property
    def method(self) -> str:
        """GET, POST …"""
        return self.head.method

    def header(self, name: bytes) -> str | None:
        """Return a header by its lower-case name."""
        value = self.head.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def body(self, limit: int) -> Data:
        """Return the body. Raises INVALID_ARG where it was too long to be kept, naming `limit`, in bytes."""
        if self.size != len(self.data) - self.begin:
            raise invalid(too_long(self.size, limit))
        return memoryview(self.data)[self.begin :] if self.begin else self.data

    def framing(self) -> bytes:
        """Begin the response: return its header lines about the connection, and decide whether that stays open."""
        self.started = True
        head = self.head
        self.keep_alive = head.keep_alive and not self._writer.is_last
        if not self.keep_alive:
            return _CLOSE
        return _KEEP_ALIVE if head.old else b""

    def send(self, pieces: list[Data], size: int) -> None:
        """Send a complete response of about `size` bytes, with its head, for which `framing` was called."""
        self._writer.put(pieces, size)
        self._end()

    def reply(self, reply: Reply) -> None:
        """Send a complete response. Where one has begun, close the connection, so that it is seen to be cut short."""
        if self.answered:
            return
        if self.started:
            self.keep_alive = False
            self._end()
            return
        if self.head.reworded is not None:
            reply = self.head.reworded(reply)
        size = 0
        for chunk in reply.chunks:
            size += len(chunk)
        head = head_bytes(reply.status, reply.headers, b"Content-Length: %d\r\n%b" % (size, self.framing()))
        self.send([head] if self.head.only_head else [head, *reply.chunks], size)

    def start(self, status: int, headers: Headers) -> None:
        """Begin a streamed response: chunked, or for an HTTP/1.0 client until the connection closes."""
        self._chunked = not self.head.old
        framing = self.framing()
        if self._chunked:
            framing = _CHUNKED + framing
        elif self.keep_alive:
            self.keep_alive, framing = False, _CLOSE
        self._writer.write(head_bytes(status, headers, framing))

    async def write(self, chunk: bytes) -> None:
        """Send a piece of the stream, and wait while the client reads more slowly than it is written."""
        self.push(chunk)
        await self._writer.drained()

    def push(self, chunk: bytes) -> None:
        """Send a piece of the stream without waiting. What it comes from is to be paced."""
        pieces: list[Data] = [b"%x\r\n" % len(chunk), chunk, b"\r\n"] if self._chunked else [chunk]
        self._writer.put(pieces, len(chunk))

    def paces(self, source: Source) -> None:
        """Pause a source of the stream whenever the client is behind with reading, until the response ends."""
        self._writer.source = source
        if self._writer.paused:
            source.pause()

    def end(self) -> None:
        """End the stream."""
        if self._chunked:
            self._writer.write(b"0\r\n\r\n")
        self._end()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Answer by a coroutine, as a task of its own."""
        self.work = asyncio.get_running_loop().create_task(self._run(work))

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            self.stop()
        except Exception as error:
            self.fail(error)

    def cancel(self) -> None:
        """Cancel the work on the request."""
        work, self.work = self.work, None
        if work is not None:
            work.cancel()

    def stop(self) -> None:
        """Answer that the server is shutting down."""
        self._interrupt(503, "the server is shutting down")

    def fail(self, error: Exception) -> None:
        """Answer after an unexpected error, and log it."""
        _log.error("%s %s failed", self.head.method, self.head.path, exc_info=error)
        self._interrupt(500, f"unexpected {type(error).__name__} in the HTTP front end")

    def _interrupt(self, status: int, message: str) -> None:
        interrupted, self.interrupted = self.interrupted, None
        if interrupted is None or self.answered:
            self.reply(message_reply(status, message))
        else:
            interrupted(status, message)

    def _end(self) -> None:
        self.answered = True
        self.work = None
        self.interrupted = None
        self._writer.source = None
        self._ended(self)

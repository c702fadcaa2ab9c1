"""One connection with one request: it is answered here, or waits, and is passed on byte by byte both ways."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from argosy_agent.activator.metrics import Metrics
from argosy_agent.activator.pending import NotForwardedError, PendingRequests, UnreachableError, waiting
from argosy_agent.activator.request_kind import NO_SERVER, RequestKind
from argosy_agent.activator.spans import Spans
from argosy_agent.contract.activation import Endpoint

from . import messages, openai
from .bodies import BodyBudget
from .messages import END, Head, HeadError, parse_head
from .openai import BodyError, OpenAiPath
from .paths import ParsedPath, parse_target

LIMIT = 1 << 16
"""Bytes of a head, and of a body that are read while its request waits; the rest stays with the client."""
HEAD_S = 60.0
"""How long a request's head may take to come."""
CONNECT_S = 2.0
LINGER_S = 2.0
"""How long what still comes of a request is taken and dropped after its answer, which would be lost otherwise."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_SERVER = {"name": "argosy", "version": "", "extensions": []}


class Connection:
    """A client's connection. `ready` returns whether the activator knows its members.

    `bodies` is the memory that all connections share for bodies that are read before their requests wait.
    """

    def __init__(
        self,
        holder: PendingRequests,
        metrics: Metrics,
        bodies: BodyBudget,
        ready: Callable[[], bool],
        spans: Spans,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._pending, self._metrics, self._bodies, self._ready = holder, metrics, bodies, ready
        self._spans, self._reader, self._writer = spans, reader, writer
        self._body = bytearray()

    async def serve(self) -> None:
        """Serve the connection until it is closed."""
        try:
            answer = await self._served()
            if answer:
                self._writer.write(answer)
            await self._finish()
        except (ConnectionError, TimeoutError):
            self._writer.transport.abort()
        finally:
            self._writer.close()
            with suppress(ConnectionError):
                await self._writer.wait_closed()

    async def _served(self) -> bytes:
        """Return the activator's own answer, or nothing where a server has answered or the client has left."""
        try:
            head = await self._head()
            if head is None:
                return b""
            _, target = head.request
        except HeadError as error:
            return messages.failed(HTTPStatus.BAD_REQUEST, str(error))
        requested = parse_target(target)
        if requested.openai is not None:
            return await self._openai(head, requested.openai)
        try:
            return self._own(requested) or await self._passed(head, requested.model)
        except NotForwardedError as error:
            return messages.refused(error)

    async def _openai(self, head: Head, path: OpenAiPath) -> bytes:
        """Answer a request of OpenAI's API, or have a server answer it. Returns what `_served` returns."""
        created = int(time.time())
        try:
            if path.names_model:
                await self._read_body(head)
                return await self._passed(head, openai.model_of(bytes(self._body)))
            if path.model:
                return openai.model(self._pending.member(path.model).model, created)
        except NotForwardedError as error:
            return openai.refused(error)
        except BodyError as error:
            return openai.unreadable(error)
        except asyncio.IncompleteReadError:
            return b""
        if path.lists:
            return openai.models(self._pending.models, created)
        if path.kind is RequestKind.SERVER_READY and self._ready():
            return messages.ok({"status": "ok"})
        return openai.no_server()

    async def _read_body(self, head: Head) -> None:
        """Read the body of a request, which has the model's name anywhere. Raises BodyError, or IncompleteReadError
        where the client leaves.
        """
        length = openai.body_length(head)
        if openai.expects_continue(head):
            self._writer.write(_CONTINUE)
        with self._bodies.reading(length):
            async with asyncio.timeout(HEAD_S):
                self._body += await self._reader.readexactly(length)

    async def _head(self) -> Head | None:
        """Read the head of the request; None where none comes. Raises HeadError."""
        try:
            async with asyncio.timeout(HEAD_S):
                return parse_head(await self._reader.readuntil(END))
        except asyncio.LimitOverrunError as error:
            raise HeadError(f"the request's head has more than {LIMIT} bytes") from error
        except (asyncio.IncompleteReadError, TimeoutError):
            return None

    def _own(self, requested: ParsedPath) -> bytes:
        """Return the answer to what needs no running server; empty where a server is to answer.

        Raises NotForwardedError.
        """
        match requested.kind:
            case RequestKind.LIVE:
                return messages.ok()
            case RequestKind.SERVER_READY if not self._ready():
                return messages.failed(
                    HTTPStatus.SERVICE_UNAVAILABLE, "it is not known yet, or no more, what is served"
                )
            case RequestKind.SERVER_READY:
                return messages.ok()
            case RequestKind.SERVER:
                return messages.ok(dict(_SERVER))
            case RequestKind.OTHER:
                return messages.failed(HTTPStatus.SERVICE_UNAVAILABLE, NO_SERVER)
        if self._pending.member(requested.model).endpoints or requested.kind is RequestKind.QUEUE:
            return b""
        if requested.kind is RequestKind.READY:
            return messages.ok()
        message = f"model '{requested.model}' runs nowhere now; {NO_SERVER}"
        return messages.failed(HTTPStatus.SERVICE_UNAVAILABLE, message)

    async def _passed(self, head: Head, model: str) -> bytes:
        """Relay the request.

        Return the answer that the activator gives in place of the server, if any. Raises NotForwardedError.
        """
        name = self._pending.member(model).name
        with self._spans.request(model, head.headers) as span:
            with waiting(span, self._metrics.ended, name) as wait:
                way = await self._way(model)
                if way is not None:
                    wait.outcome = "passed"
            if way is None:
                return b""
            return await self._through(way, Head(head.first, tuple(span.passed_on(head.headers))))

    async def _through(self, way: Streams, head: Head) -> bytes:
        """Relay the request to a server, and return what `_passed` returns."""
        reader, writer = way
        try:
            writer.write(head.closing() + self._body)
            return await self._relay(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _way(self, model: str) -> Streams | None:
        """Return a connection to a server, once there is one; None where the client leaves before.

        Raises NotForwardedError.
        """
        reaching = asyncio.create_task(self._pending.reach(model, max(LIMIT, len(self._body)), _open))
        leaving = asyncio.create_task(self._leaves())
        try:
            await asyncio.wait((reaching, leaving), return_when=asyncio.FIRST_COMPLETED)
            return await reaching if reaching.done() else None
        finally:
            await _end(reaching, leaving)

    async def _leaves(self) -> None:
        """Wait until the client has closed the connection.

        What it sends meanwhile is buffered up to `LIMIT` bytes; the rest waits in the socket.
        """
        begun = len(self._body)
        while len(self._body) < begun + LIMIT:
            more = await self._reader.read(begun + LIMIT - len(self._body))
            if not more:
                return
            self._body += more
        await asyncio.Event().wait()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Relay both directions until the server has answered or the client is gone. Returns what `_passed` returns."""
        sending = asyncio.create_task(self._send(writer))
        answering = asyncio.create_task(self._answer(reader))
        try:
            await asyncio.wait((sending, answering), return_when=asyncio.FIRST_COMPLETED)
            return await answering if answering.done() else b""
        finally:
            await _end(sending, answering)

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        """Forward the rest of the request until the client is gone; a server that takes no more may still answer."""
        takes = True
        while more := await self._reader.read(LIMIT):
            if takes:
                try:
                    writer.write(more)
                    await writer.drain()
                except ConnectionError:
                    takes = False

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        """Forward the server's answer as it comes. Raises ConnectionError where it breaks off."""
        try:
            head = parse_head(data := await reader.readuntil(END))
            while head.is_interim:
                self._writer.write(data)
                head = parse_head(data := await reader.readuntil(END))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, HeadError, ConnectionError) as error:
            message = "the server ended before it answered; whether the request was executed is not known"
            return messages.failed(HTTPStatus.BAD_GATEWAY, f"{message} ({type(error).__name__})")
        self._writer.write(head.closing())
        while more := await reader.read(LIMIT):
            self._writer.write(more)
            await self._writer.drain()
        return b""

    async def _finish(self) -> None:
        """End the answer, then read the rest of the request: closing earlier would lose the answer."""
        await self._writer.drain()
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while await self._reader.read(LIMIT):
                    pass


async def _open(endpoint: Endpoint) -> Streams:
    """Connect to a server. Raises UnreachableError."""
    try:
        async with asyncio.timeout(CONNECT_S):
            return await asyncio.open_connection(endpoint.host, endpoint.http, limit=LIMIT)
    except (OSError, TimeoutError) as error:
        raise UnreachableError(str(error)) from error


async def _end(*tasks: "asyncio.Task[object]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

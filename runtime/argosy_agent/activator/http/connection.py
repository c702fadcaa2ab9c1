"""One connection with one request: it is answered here, or waits, and is passed on byte by byte both ways."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from argosy_agent.activator.asked import NO_SERVER, Asked
from argosy_agent.activator.holding import Holder, HoldingError, UnreachableError
from argosy_agent.activator.metrics import Metrics
from argosy_agent.contract.activation import Endpoint

from . import answers
from .head import END, Head, HeadError, parse_head
from .paths import Wanted, wanted

LIMIT = 1 << 16
"""Bytes of a head, and of a body that are read while its request waits; what is more stays with who sends it."""
HEAD_S = 60.0
"""How long a request's head may take to come."""
CONNECT_S = 2.0
LINGER_S = 2.0
"""How long what still comes of a request is taken and dropped after its answer, which would be lost otherwise."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_SERVER = {"name": "argosy", "version": "", "extensions": []}


class Connection:
    """A client's connection. `ready` says whether the activator knows what there is to hold requests for."""

    def __init__(
        self,
        holder: Holder,
        metrics: Metrics,
        ready: Callable[[], bool],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._holder, self._metrics, self._ready = holder, metrics, ready
        self._reader, self._writer = reader, writer
        self._body = bytearray()

    async def serve(self) -> None:
        """Until it is closed."""
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
        """What is to be answered here; nothing where a server has answered, or nobody waits for it any more."""
        try:
            head = await self._head()
            if head is None:
                return b""
            _, target = head.request
        except HeadError as error:
            return answers.failed(HTTPStatus.BAD_REQUEST, str(error))
        asked = wanted(target)
        try:
            return self._own(asked) or await self._passed(head, asked.model)
        except HoldingError as error:
            return answers.refused(error)

    async def _head(self) -> Head | None:
        """The request's; None where none comes. Raises HeadError."""
        try:
            async with asyncio.timeout(HEAD_S):
                return parse_head(await self._reader.readuntil(END))
        except asyncio.LimitOverrunError as error:
            raise HeadError(f"the request's head has more than {LIMIT} bytes") from error
        except (asyncio.IncompleteReadError, TimeoutError):
            return None

    def _own(self, asked: Wanted) -> bytes:
        """The answer to what concerns no server that runs; empty where one is to answer. Raises HoldingError."""
        match asked.asked:
            case Asked.LIVE:
                return answers.said()
            case Asked.SERVER_READY if not self._ready():
                return answers.failed(HTTPStatus.SERVICE_UNAVAILABLE, "it is not known yet, or no more, what is served")
            case Asked.SERVER_READY:
                return answers.said()
            case Asked.SERVER:
                return answers.said(dict(_SERVER))
            case Asked.OTHER:
                return answers.failed(HTTPStatus.SERVICE_UNAVAILABLE, NO_SERVER)
        if self._holder.member(asked.model).endpoints or asked.asked is Asked.HOLD:
            return b""
        if asked.asked is Asked.READY:
            return answers.said()
        return answers.failed(HTTPStatus.SERVICE_UNAVAILABLE, f"model '{asked.model}' runs nowhere now; {NO_SERVER}")

    async def _passed(self, head: Head, model: str) -> bytes:
        """Pass the request on. What is to be answered here in place of the server, if anything. Raises HoldingError."""
        name = self._holder.member(model).name
        try:
            way = await self._way(model)
        except HoldingError as error:
            self._metrics.ended(name, error.refusal)
            raise
        self._metrics.ended(name, "gone" if way is None else "passed")
        if way is None:
            return b""
        reader, writer = way
        try:
            writer.write(head.closing() + self._body)
            return await self._relay(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _way(self, model: str) -> Streams | None:
        """A connection to a server, once there is one; None where the client leaves before. Raises HoldingError."""
        reaching = asyncio.create_task(self._holder.reach(model, LIMIT, _open))
        leaving = asyncio.create_task(self._leaves())
        try:
            await asyncio.wait((reaching, leaving), return_when=asyncio.FIRST_COMPLETED)
            return await reaching if reaching.done() else None
        finally:
            await _end(reaching, leaving)

    async def _leaves(self) -> None:
        """Until the client is gone. What it sends meanwhile is kept, up to a bound at which it waits with the rest."""
        while len(self._body) < LIMIT:
            more = await self._reader.read(LIMIT - len(self._body))
            if not more:
                return
            self._body += more
        await asyncio.Event().wait()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Both ways, until the server has answered or the client is gone. As `_passed`."""
        sending = asyncio.create_task(self._send(writer))
        answering = asyncio.create_task(self._answer(reader))
        try:
            await asyncio.wait((sending, answering), return_when=asyncio.FIRST_COMPLETED)
            return await answering if answering.done() else b""
        finally:
            await _end(sending, answering)

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        """The rest of the request, until the client is gone; a server that takes no more may still answer."""
        takes = True
        while more := await self._reader.read(LIMIT):
            if takes:
                try:
                    writer.write(more)
                    await writer.drain()
                except ConnectionError:
                    takes = False

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        """The server's, as it comes. Raises ConnectionError where it breaks off."""
        try:
            head = parse_head(data := await reader.readuntil(END))
            while head.is_interim:
                self._writer.write(data)
                head = parse_head(data := await reader.readuntil(END))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, HeadError, ConnectionError) as error:
            told = "the server ended before it answered; whether the request was executed is not known"
            return answers.failed(HTTPStatus.BAD_GATEWAY, f"{told} ({type(error).__name__})")
        self._writer.write(head.closing())
        while more := await reader.read(LIMIT):
            self._writer.write(more)
            await self._writer.drain()
        return b""

    async def _finish(self) -> None:
        """The end of the answer, and then what still comes of the request: closing before would lose the answer."""
        await self._writer.drain()
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while await self._reader.read(LIMIT):
                    pass


async def _open(endpoint: Endpoint) -> Streams:
    """Raises UnreachableError."""
    try:
        async with asyncio.timeout(CONNECT_S):
            return await asyncio.open_connection(endpoint.host, endpoint.http, limit=LIMIT)
    except (OSError, TimeoutError) as error:
        raise UnreachableError(str(error)) from error


async def _end(*tasks: "asyncio.Task[object]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

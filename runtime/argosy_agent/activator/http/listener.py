"""The port of a protocol whose connections are streams."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from . import messages
from .connection import LIMIT
from .messages import END

MOST_CONNECTIONS = 4096
"""More are refused: each takes a file, and some memory."""
_BACKLOG = 1024
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class ListenError(Exception):
    """A port cannot be had; the message names it."""


class Listener:
    """Serves each connection by `serve`."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen there, on every address for an empty host. The port: 0 takes a free one. Raises ListenError."""
        try:
            listening = _listening(host, port)
        except OSError as error:
            raise ListenError(f"port {port} cannot be listened on: {error.strerror or error}") from error
        self._server = await asyncio.start_server(self._accept, sock=listening, limit=LIMIT, backlog=_BACKLOG)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def close(self) -> None:
        """Take no new connections; those that are open go on."""
        if self._server is not None:
            self._server.close()

    async def ended(self) -> None:
        """Wait until every connection is closed."""
        while self._open:
            await asyncio.wait(self._open)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serve = self._serve if len(self._open) < MOST_CONNECTIONS else _refuse
        task = asyncio.ensure_future(_run(serve, reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)


def _listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises OSError."""
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
    except (OSError, ValueError):  # where IPv6 is switched off
        return socket.create_server(("", port), backlog=_BACKLOG)


async def _run(serve: Serve, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await serve(reader, writer)
    finally:
        writer.close()


async def _refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    message = f"{MOST_CONNECTIONS} connections are open already, the most there may be; ask again later"
    writer.write(messages.failed(HTTPStatus.SERVICE_UNAVAILABLE, message))


def exposing(text: Callable[[], str]) -> Serve:
    """Return what answers every request with the text as it stands, for Prometheus."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10.0):
                await reader.readuntil(END)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError):
            return
        writer.write(messages.metrics(text()))

    return serve

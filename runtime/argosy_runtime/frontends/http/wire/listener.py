"""The HTTP server on one listening socket: its connections, and how they end."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Collection
from math import isfinite
from time import monotonic

from argosy_runtime.frontends.sockets import BACKLOG

from .application import Application
from .connection import Connection
from .head_cache import HeadCache
from .timeouts import Timeouts

# Seconds in which cancelled requests may be answered before their connections are aborted.
CANCEL_S = 0.5
# Seconds after an answer in which a client may use its connection again: as long as pools of clients usually keep one.
REUSE_S = 15.0


class HttpListener:
    """Serves an application over HTTP/1.1 on one socket.

    `max_body` is the longest body, in bytes, of requests without the header that says how long their JSON is; `tls`
    None means plain text.
    """

    def __init__(
        self,
        app: Application,
        listening: socket.socket,
        max_body: int,
        timeouts: Timeouts | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.port: int = listening.getsockname()[1]
        self._socket = listening
        self._tls = tls
        self._max_body = max_body
        self._heads = HeadCache(app)
        self._connections: set[Connection] = set()
        self._timeouts = timeouts or Timeouts()
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._draining = False

    async def start(self) -> None:
        """Accept connections. Return once it does."""
        loop = asyncio.get_running_loop()
        # A client that does not get on with its handshake is cut off by the loop, after a minute.
        self._server = await loop.create_server(self._connection, sock=self._socket, backlog=BACKLOG, ssl=self._tls)
        if isfinite(self._timeouts.period):
            self._sweeping = loop.create_task(self._sweep())

    def _connection(self) -> Connection:
        return Connection(self._heads, self._connections, self._max_body, self._draining, monotonic)

    def drain(self) -> None:
        """Go on answering, and end every connection with its next answer, so that clients connect to another server."""
        self._draining = True
        for connection in self._connections:
            connection.drain()

    def expects(self, now: float) -> bool:
        """Return whether a request is being read or answered, or a client may still use the connection that it had its
        last answer on: the server cannot close it without the risk that a request is on its way.
        """
        return any(connection.expects(now, REUSE_S) for connection in self._connections)

    def finish(self) -> None:
        """Accept no more, and close each connection once its request in flight is answered."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.finish()

    async def stop(self, timeout_s: float) -> None:
        """Accept no more, let requests in flight finish for up to `timeout_s`, then cancel them."""
        if self._server is None:
            return
        self.finish()
        await self._until_empty(timeout_s)
        for connection in tuple(self._connections):
            connection.cancel()
        await self._until_empty(CANCEL_S)
        for connection in tuple(self._connections):
            connection.abort()
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._server = None

    async def _until_empty(self, timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._connections:
                    await asyncio.wait([connection.closed for connection in self._connections])

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._timeouts.period)
            sweep(self._connections, loop.time(), self._timeouts.limits)


def sweep(connections: Collection[Connection], now: float, limits: tuple[float, ...]) -> None:
    """Give up the connections that have waited for their clients too long; `now` in seconds."""
    overdue = [
        connection
        for connection in connections
        if connection.watch.is_over(connection.phase, connection.progress, connection.unread, now, limits)
    ]
    for connection in overdue:
        connection.give_up()

"""A Service as its clients see it: one address, from which each new connection goes to one of the endpoints."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import cast

Ports = Mapping[str, int]
"""The ports of an endpoint by name: http, grpc."""
NAMES = ("http", "grpc")


class Service:
    """Connects clients to endpoints in turn, as kube-proxy does: a connection stays with its endpoint, whatever becomes
    of the list. All addresses are on loopback.
    """

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}
        self._endpoints: list[Ports] = []
        self._turn = 0

    def add(self, endpoint: Ports) -> None:
        """Send new connections there, too."""
        self._endpoints.append(endpoint)

    def remove(self, endpoint: Ports) -> None:
        """Send no new connection there."""
        self._endpoints = [other for other in self._endpoints if other is not endpoint]

    def next(self, name: str) -> int:
        """Return the port for the next connection. Raises OSError without endpoints, as a connection would."""
        if not self._endpoints:
            raise ConnectionRefusedError("the Service has no endpoints")
        self._turn += 1
        return self._endpoints[self._turn % len(self._endpoints)][name]


class _Side(asyncio.Protocol):
    """One side of a relayed connection, which passes bytes and ends on to the other."""

    def __init__(self, other: "_Side | None" = None) -> None:
        self.other = other
        self.transport: asyncio.Transport
        self.lost = self.ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and not self.other.lost:
            self.other.transport.write(data)

    def eof_received(self) -> bool:
        """Pass the end on. Return whether the connection stays open for the other side's bytes."""
        self.ended = True
        other = self.other
        if other is None or other.lost or other.ended:
            return False
        other.transport.write_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        other = self.other
        if other is None or other.lost:
            return
        if exc is None:
            other.transport.close()
        else:
            other.transport.abort()

    def pause_writing(self) -> None:
        if self.other is not None and not self.other.lost:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and not self.other.lost:
            self.other.transport.resume_reading()


class _ClientSide(_Side):
    """The side of a client, which is read once its endpoint is connected; one that refuses resets the client."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__()
        self._service, self._name = service, name
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.pause_reading()
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        try:
            port = self._service.next(self._name)
            # It has this side from the start: an endpoint may send, or reset, before this task goes on.
            connecting = asyncio.get_running_loop().create_connection(lambda: _Side(self), "127.0.0.1", port)
            _, side = await connecting
        except OSError:
            self.transport.abort()
            return
        if self.lost:
            side.transport.abort()
            return
        self.other = side
        self.transport.resume_reading()


@asynccontextmanager
async def opened() -> AsyncIterator[Service]:
    """Yield a Service without endpoints, whose ports are open."""
    loop, service = asyncio.get_running_loop(), Service()
    servers = [await loop.create_server(partial(_ClientSide, service, name), "127.0.0.1", 0) for name in NAMES]
    service.ports = {name: server.sockets[0].getsockname()[1] for name, server in zip(NAMES, servers, strict=True)}
    try:
        yield service
    finally:
        for server in servers:
            server.close()

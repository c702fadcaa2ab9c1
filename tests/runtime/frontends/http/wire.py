"""A connection without a socket: what is fed to it, and what it writes."""

import asyncio
from collections.abc import Iterable

from argosy_runtime.frontends.http.wire.application import Application
from argosy_runtime.frontends.http.wire.connection import Connection
from argosy_runtime.frontends.http.wire.head_cache import HeadCache


class Wire(asyncio.Transport):
    """A transport that keeps what is written; `feed` brings bytes to its protocol of that time.

    What would be read while reading is paused waits, as it does in a socket.
    """

    def __init__(self, app: Application, max_body: int = 1 << 20, draining: bool = False) -> None:
        super().__init__()
        self.connections: set[Connection] = set()
        self.connection = Connection(HeadCache(app), self.connections, max_body, draining, lambda: self.now)
        self.now = 0.0
        self.written = b""
        self.closed = False
        self.aborted = False
        self.unread = 0
        self.full = False
        self.reading = True
        self._protocol: asyncio.BaseProtocol = self.connection
        self._unread: list[bytes] = []
        self.connection.connection_made(self)

    def feed(self, data: bytes) -> None:
        self._unread.append(data)
        self._drain()

    def end(self) -> None:
        """End the client's side."""
        if not self._protocol.eof_received():  # type: ignore[attr-defined]
            self.close()

    def _drain(self) -> None:
        while self._unread and self.reading and not self.closed:
            data = self._unread.pop(0)
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                buffer = self._protocol.get_buffer(len(data))
                taken = min(len(buffer), len(data))
                buffer[:taken] = data[:taken]  # type: ignore[index]
                if data[taken:]:
                    self._unread.insert(0, data[taken:])
                self._protocol.buffer_updated(taken)
            elif data:
                assert isinstance(self._protocol, asyncio.Protocol)
                self._protocol.data_received(data)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True
        asyncio.get_running_loop().call_soon(self._drain)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.written += data

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._protocol.connection_lost(None)  # type: ignore[attr-defined]

    def abort(self) -> None:
        self.aborted = True
        self.close()


class FullWire(Wire):
    """A wire that pauses its writer above `HIGH` bytes, as sockets do; its client reads when a test calls `read`."""

    HIGH = 1 << 16

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        self.unread += len(data)
        if self.unread > self.HIGH and not self.full:
            self.full = True
            self.connection.pause_writing()

    def read(self, size: int) -> None:
        """Read so many bytes as the client."""
        self.unread -= min(size, self.unread)
        if self.full and self.unread < self.HIGH // 4:
            self.full = False
            self.connection.resume_writing()

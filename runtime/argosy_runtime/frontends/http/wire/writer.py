"""The sending side of one connection: what is written, whether the client keeps up, and when it ends."""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from argosy_runtime.tensors import Data

# Above this many bytes an answer is handed to the transport in pieces, and not joined first.
JOIN_BYTES: Final = 1 << 16


class Source(Protocol):
    """What a stream is written from."""

    def pause(self) -> None:
        """Make no more for now: the client reads too slowly."""

    def resume(self) -> None:
        """Go on."""


class Writer:
    """Writes the responses of a connection, one after the other.

    `more` is whether a further request has come already. `finishing`: the answer now being made is the last.
    `draining`: it is unless `more`. `lost`: the client has gone, and nothing is written any more. `source` is paused
    while the client is behind with reading.
    """

    __slots__ = ("_transport", "_writable", "draining", "finishing", "lost", "more", "source")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable: asyncio.Event | None = None
        self.draining = False
        self.finishing = False
        self.lost = False
        self.more = False
        self.source: Source | None = None

    @property
    def is_last(self) -> bool:
        """Whether an answer that begins now is this connection's last."""
        return self.finishing or (self.draining and not self.more)

    @property
    def paused(self) -> bool:
        """Whether the client is behind with reading."""
        return self._writable is not None

    def put(self, pieces: Sequence[Data], size: int) -> None:
        """Write pieces of about `size` bytes altogether."""
        if self.lost:
            return
        if size <= JOIN_BYTES:
            self._transport.write(b"".join(pieces))
        else:
            self._transport.writelines(pieces)

    def write(self, data: bytes) -> None:
        """Write bytes."""
        if not self.lost:
            self._transport.write(data)

    def close(self) -> None:
        """Close once everything is written."""
        self._transport.close()

    def abort(self) -> None:
        """Abort the connection."""
        self._transport.abort()

    def pause(self) -> None:
        """Note that the client reads too slowly."""
        self._writable = asyncio.Event()
        if self.source is not None:
            self.source.pause()

    def resume(self) -> None:
        """Note that the client has caught up, or gone."""
        if self._writable is not None:
            self._writable.set()
            self._writable = None
            if self.source is not None:
                self.source.resume()

    async def drained(self) -> None:
        """Wait while the client is behind with reading."""
        if self._writable is not None:
            await self._writable.wait()

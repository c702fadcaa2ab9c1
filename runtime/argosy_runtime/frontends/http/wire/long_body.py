"""A long body on its way: read into one buffer, so that it is never joined from pieces."""

import asyncio
from collections.abc import Callable

import numpy as np


class LongBody(asyncio.BufferedProtocol):
    """A body of `length` bytes, of which some have come, read in place of its connection.

    `received` is called with each piece, with the body once it is complete, or else with None. Raises MemoryError where
    there are not so many bytes.
    """

    def __init__(
        self,
        connection: asyncio.BaseProtocol,
        length: int,
        begun: bytes,
        received: Callable[[memoryview | None], None],
    ) -> None:
        self._connection = connection
        self._received = received
        # The system allocates pages as they are written, so that a client gets no memory by declaring a long body.
        self._body: memoryview = np.empty(length, np.uint8).data
        self._at = len(begun)
        self._body[: self._at] = begun

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._body[self._at :]

    def buffer_updated(self, nbytes: int) -> None:
        self._at += nbytes
        self._received(self._body if self._at == len(self._body) else None)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

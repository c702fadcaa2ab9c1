"""A long body on its way: read to where it stays, so that it is never joined from pieces."""

import asyncio
from typing import Protocol

import numpy as np


class Waiting(Protocol):
    """The connection in whose place a long body is read."""

    progress: int

    def long_body_complete(self, body: memoryview) -> None:
        """All of it has come."""

    def pause_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""

    def resume_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""


class LongBody(asyncio.BufferedProtocol):
    """A body of `length` bytes, of which some have come. Raises MemoryError where so many cannot be had."""

    def __init__(self, connection: Waiting, length: int, begun: bytes) -> None:
        self._connection = connection
        # The system gives its pages as they are written to, so that no client has memory by promising much.
        self._body: memoryview = np.empty(length, np.uint8).data
        self._at = len(begun)
        self._body[: self._at] = begun

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._body[self._at :]

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.progress += 1
        self._at += nbytes
        if self._at == len(self._body):
            self._connection.long_body_complete(self._body)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

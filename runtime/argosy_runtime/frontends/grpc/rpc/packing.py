"""Compressing large messages of a call in a thread, in the order in which they are sent."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from argosy_runtime.frontends.inflating import in_thread
from argosy_runtime.http2 import Stream
from argosy_runtime.tensors import Data

from .framing import gzipped


class Packing:
    """The messages of one call from a large one on, and its end behind them.

    Those that wait count as unsent bytes of the stream. `done` is called once nothing waits, with the exception that
    compressing raised, if any.
    """

    __slots__ = ("_done", "_level", "_running", "_size", "_stream", "_trailers", "_waiting")

    def __init__(self, stream: Stream, level: int, done: Callable[[Exception | None], None]) -> None:
        self._stream = stream
        self._level = level
        self._done = done
        self._waiting: deque[tuple[Sequence[Data], int]] = deque()
        self._running: asyncio.Future[bytes] | None = None
        self._size = 0
        self._trailers: bytes | None = None

    def send(self, parts: Sequence[Data], size: int) -> None:
        """Send a message of `size` bytes once it is compressed and those before it are sent."""
        if self._stream.reserve(size):
            self._waiting.append((parts, size))
            if self._running is None:
                self._compress_next()

    def end(self, trailers: bytes) -> None:
        """Send trailers behind the messages; of several the first."""
        if self._trailers is None:
            self._trailers = trailers

    def drop(self) -> None:
        """Send nothing more."""
        self._waiting.clear()
        if self._running is not None:
            self._running.cancel()

    def _compress_next(self) -> None:
        parts, self._size = self._waiting.popleft()
        self._running = in_thread(gzipped, parts, self._level)
        self._running.add_done_callback(self._compressed)

    def _compressed(self, running: "asyncio.Future[bytes]") -> None:
        self._running = None
        if running.cancelled():
            return
        try:
            packed = running.result()
        except Exception as error:
            self._waiting.clear()
            self._done(error)
            return
        self._stream.send_reserved(self._size, packed)
        if self._waiting:
            self._compress_next()
            return
        if self._trailers is not None:
            self._stream.end(self._trailers)
        self._done(None)

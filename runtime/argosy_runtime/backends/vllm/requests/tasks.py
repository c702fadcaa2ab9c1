"""The requests in the engine, and the sending of their news, together for all that the engine's step brought."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, Protocol

from argosy_runtime.backends.contract import Host
from argosy_runtime.errors import ServingError

from .streams import cancelled

SWEEP_SECONDS = 0.05
"""Seconds between looks for clients that have gone while the engine has no news of their requests."""


class Stream(Protocol):
    """The responses of one request. `is_over`: its last news are there, or its error is sent."""

    is_over: bool

    def is_cancelled(self) -> bool:
        """Return whether the client has gone."""

    def take(self, output: Any) -> None:
        """Take an output of the engine's. Raises ServingError where it is an error."""

    def flush(self) -> None:
        """Send what is due."""

    def fail(self, error: ServingError) -> None:
        """Send the error as the last response."""


class RequestTasks:
    """The requests on their way. To be used on the engine's loop.

    `explain` makes a serving error of any exception of the engine's.
    """

    def __init__(self, host: Host, explain: Callable[[Exception], ServingError]) -> None:
        self._host = host
        self._explain = explain
        self._open: dict[Stream, asyncio.Task[None]] = {}
        self._with_news: dict[Stream, None] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self, stream: Stream, outputs: AsyncGenerator[Any, None], ended: Callable[[], None]) -> None:
        """Follow a request's outputs to their end, and call `ended` then."""
        loop = asyncio.get_running_loop()
        self._idle.clear()
        task = self._open[stream] = loop.create_task(self._follow(stream, outputs))
        # Not at the end of the coroutine: a task that is cancelled before its first step runs nothing of it.
        task.add_done_callback(partial(self._close, stream, ended))
        if self._sweep is None:
            self._sweep = loop.call_later(SWEEP_SECONDS, self._look_for_cancelled)

    async def wait_idle(self) -> None:
        """Wait until no request is open."""
        await self._idle.wait()

    def fail_all(self, error: ServingError) -> None:
        """End all requests with an error."""
        for stream, task in list(self._open.items()):
            if not stream.is_over:
                stream.fail(error)
            task.cancel()

    async def _follow(self, stream: Stream, outputs: AsyncGenerator[Any, None]) -> None:
        try:
            async with aclosing(outputs):
                async for output in outputs:
                    stream.take(output)
                    self._note_news(stream)
        except Exception as error:
            if not stream.is_over:
                self._with_news.pop(stream, None)
                stream.fail(self._explain(error))

    def _close(self, stream: Stream, ended: Callable[[], None], _task: "asyncio.Task[None]") -> None:
        ended()
        del self._open[stream]
        if not self._open:
            self._idle.set()

    def _note_news(self, stream: Stream) -> None:
        if not self._with_news:
            # After all that the engine's step has made ready to run.
            asyncio.get_running_loop().call_soon(self._flush)
        self._with_news[stream] = None

    def _flush(self) -> None:
        streams, self._with_news = self._with_news, {}
        with self._host.corked():
            for stream in streams:
                self._flush_one(stream)

    def _flush_one(self, stream: Stream) -> None:
        try:
            stream.flush()
        except Exception as error:
            # Of this stream alone: those behind it have news, too.
            stream.fail(self._explain(error))
            if (task := self._open.get(stream)) is not None:
                task.cancel()

    def _look_for_cancelled(self) -> None:
        self._sweep = None
        for stream, task in list(self._open.items()):
            if not stream.is_over and stream.is_cancelled():
                self._with_news.pop(stream, None)
                stream.fail(cancelled())
                task.cancel()
        if self._open:
            self._sweep = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._look_for_cancelled)

"""The requests in the engine: after each step their outputs are read together, and sent in one frame."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from argosy_runtime.backends.contract import Host
from argosy_runtime.errors import ServingError, cancelled

SWEEP_SECONDS = 0.05
"""Seconds between looks for clients that have gone, and for outputs that no step of the engine brought."""


class Stream(Protocol):
    """The responses of one request. `is_over`: its last output is there, or its error is sent."""

    is_over: bool

    def is_cancelled(self) -> bool:
        """Return whether the client has gone."""

    def take(self, output: Any) -> None:
        """Take an output of the engine's. Raises ServingError where it is an error."""

    def flush(self) -> None:
        """Send what is due."""

    def fail(self, error: ServingError) -> None:
        """Send the error as the last response."""


class OpenRequests:
    """The requests on their way, whose outputs `take_outputs` reads after each step. To be used on the engine's loop.

    So no request needs a task that waits for its outputs. `llm` is vLLM's `AsyncLLM`; `explain` makes a serving error
    of any exception of the engine's.
    """

    def __init__(self, llm: Any, host: Host, explain: Callable[[Exception], ServingError]) -> None:
        self._llm = llm
        self._host = host
        self._explain = explain
        self._ended: dict[Stream, Callable[[], None]] = {}
        self._collectors: dict[Stream, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self, stream: Stream, adding: Coroutine[Any, Any, Any], ended: Callable[[], None]) -> None:
        """Await `adding`, which returns the request's `RequestOutputCollector`; call `ended` once it is over."""
        self._idle.clear()
        self._ended[stream] = ended
        self._run(self._add(stream, adding))
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep_open)

    async def wait_idle(self) -> None:
        """Wait until no request is open."""
        await self._idle.wait()

    def fail_all(self, error: ServingError) -> None:
        """End all requests with an error."""
        for stream in list(self._ended):
            self._give_up(stream, error)

    def take_outputs(self) -> None:
        """Read the outputs of all requests, and send what is new."""
        with self._host.corked():
            for stream, collector in list(self._collectors.items()):
                self._take(stream, collector)

    def _take(self, stream: Stream, collector: Any) -> None:
        try:
            output = collector.get_nowait()
            if output is None:
                return
            stream.take(output)
            stream.flush()
        except Exception as error:
            # Of this stream alone: those behind it have outputs, too.
            self._give_up(stream, self._explain(error))
            return
        if stream.is_over:
            self._end(stream)

    async def _add(self, stream: Stream, adding: Coroutine[Any, Any, Any]) -> None:
        try:
            collector = await adding
        except Exception as error:
            if stream in self._ended:
                self._give_up(stream, self._explain(error))
            return
        if stream in self._ended:
            self._collectors[stream] = collector
            with self._host.corked():
                self._take(stream, collector)  # its first step may be over
        else:
            await self._llm.abort(collector.request_id, internal=True)

    def _give_up(self, stream: Stream, error: ServingError) -> None:
        """End a request with an error, and have the engine end it. Raises what sending the error does."""
        try:
            stream.fail(error)
        finally:
            collector = self._collectors.get(stream)
            if collector is not None:
                self._run(self._llm.abort(collector.request_id, internal=True))
            self._end(stream)

    def _end(self, stream: Stream) -> None:
        self._collectors.pop(stream, None)
        self._ended.pop(stream)()
        self._note_idle()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._note_idle()

    def _note_idle(self) -> None:
        if not self._ended and not self._tasks:
            self._idle.set()

    def _sweep_open(self) -> None:
        self._sweep = None
        try:
            for stream in list(self._ended):
                if stream.is_cancelled():
                    self._give_up(stream, cancelled())
            self.take_outputs()
        finally:
            if self._ended:
                self._sweep = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep_open)

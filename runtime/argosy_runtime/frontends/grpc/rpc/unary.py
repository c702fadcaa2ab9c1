"""Unary methods other than inference: one message in, one message out, at once or by a coroutine."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from argosy_runtime.errors import ServingError
from argosy_runtime.http2 import Stream
from argosy_runtime.protocol.grpc.request import UNPARSABLE

from .calls import UnaryCall
from .metadata import CallHead
from .status import Status

_log: Final = logging.getLogger("argosy.grpc")


Handler = Callable[[Any], Message | Awaitable[Message]]
"""Takes a request message; returns a response message, or a coroutine that does. Raises ServingError."""


class Tasks:
    """Coroutines of calls. They go on when a client gives up its call, because they change the server."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Awaitable[None]) -> None:
        """Run a coroutine as a task."""
        task = self._loop.create_task(_as_coroutine(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def stop(self) -> None:
        """Cancel what still runs, and wait until it has ended."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work


class MethodCall(UnaryCall):
    """A call of a method that a handler implements."""

    __slots__ = ("_handler", "_request_type", "_tasks")

    def __init__(
        self,
        stream: Stream,
        head: CallHead,
        loop: asyncio.AbstractEventLoop,
        handler: Handler,
        request_type: Any,
        tasks: Tasks,
    ) -> None:
        super().__init__(stream, head, loop)
        self._handler = handler
        self._request_type = request_type
        self._tasks = tasks

    def message(self, data: bytes, start: int) -> None:
        try:
            answer = self._handler(self._request_type.FromString(data[start:]))
        except DecodeError:
            self.fail(Status.INTERNAL, UNPARSABLE)
        except ServingError as error:
            self.refuse(error)
        else:
            if isinstance(answer, Awaitable):
                self._tasks.start(self._answer_later(answer))
            else:
                self._answer(answer)

    def _answer(self, answer: Message) -> None:
        encoded = answer.SerializeToString()
        self.respond((encoded,), len(encoded))

    async def _answer_later(self, answer: Awaitable[Message]) -> None:
        try:
            self._answer(await answer)
        except ServingError as error:
            self.refuse(error)
        except Exception as fault:
            _log.error("a call failed unexpectedly", exc_info=fault)
            self.failed(fault)
        except asyncio.CancelledError:
            self.fail(Status.CANCELLED, "the server has stopped")
            raise

"""The interface between a connection and the application that answers its requests."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from argosy_runtime.errors import ServingError

from .heads import Head
from .reply import Reply, error_reply
from .request_context import RequestContext


class Handler(Protocol):
    """Handles all requests that have the same head."""

    def begin(self, context: RequestContext) -> None:
        """Answer, now or later, or begin to. The request is complete."""


class Application(Protocol):
    """The application behind a listener."""

    def handler(self, head: Head) -> Handler:
        """Return the handler of requests with this head."""


class Fixed:
    """The same reply to every request."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def begin(self, context: RequestContext) -> None:
        context.reply(self._reply)


Answer = Callable[..., Awaitable[Reply | None]]


class ByCoroutine:
    """Answers by a coroutine that returns the reply, or None where it has answered with a stream."""

    def __init__(self, answer: Answer, captures: tuple[str, ...] = ()) -> None:
        self._answer = answer
        self._captures = captures

    def begin(self, context: RequestContext) -> None:
        context.run(self._run(context))

    async def _run(self, context: RequestContext) -> None:
        try:
            reply = await self._answer(context, *self._captures)
        except ServingError as error:
            reply = error_reply(error)
        if reply is not None:
            context.reply(reply)

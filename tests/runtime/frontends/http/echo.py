"""An application that answers with what it is sent, and requests for it."""

import asyncio

from argosy_runtime.frontends.http.wire.application import ByCoroutine, Fixed, Handler
from argosy_runtime.frontends.http.wire.heads import Head
from argosy_runtime.frontends.http.wire.reply import Reply, message_reply
from argosy_runtime.frontends.http.wire.request_context import RequestContext

LIMIT = 200


class EchoApp:
    """/echo answers with the body, /later once `go` is called, /fails not at all; others are unknown."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.made: list[Head] = []
        self.later: list[RequestContext] = []
        self.cancelled = 0

    def handler(self, head: Head) -> Handler:
        self.made.append(head)
        if head.path in ("/echo", "/later", "/fails"):
            return self
        if head.path == "/coroutine":
            return ByCoroutine(self._wait)
        return Fixed(message_reply(404, "Not Found"))

    def begin(self, context: RequestContext) -> None:
        body = bytes(context.body(LIMIT))
        self.bodies.append(body)
        if context.head.path == "/fails":
            raise RuntimeError("no")
        if context.head.path == "/later":
            self.later.append(context)
            context.work = self
        else:
            context.reply(Reply(200, (body,)))

    def cancel(self) -> None:
        self.cancelled += 1

    async def _wait(self, context: RequestContext) -> Reply:
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1
        raise AssertionError


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"POST {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)

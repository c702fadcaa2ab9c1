"""A load over HTTP: clients with a connection each, that send the next request when the last one is answered."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import httptools
import uvloop


@dataclass
class Answers:
    """Seconds that each request took, and how many were not answered with 200."""

    seconds: list[float] = field(default_factory=list)
    refused: int = 0


class _Client(asyncio.Protocol):
    def __init__(self, request: bytes, end: float, answers: Answers, done: asyncio.Future[None]) -> None:
        self._request = request
        self._end = end
        self._answers = answers
        self._done = done
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("the server closed a connection"))

    def on_message_complete(self) -> None:
        self._answers.seconds.append(time.perf_counter() - self._sent)
        self._answers.refused += self._parser.get_status_code() != 200
        self._parser = httptools.HttpResponseParser(self)
        if self._sent < self._end:
            self._send()
        else:
            self._done.set_result(None)
            self._transport.close()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self._request)


def run(port: int, path: str, body: bytes, clients: int, seconds: float) -> Answers:
    """Run so many clients for so long. Raises ConnectionError when the server closes a connection."""
    fields = ("Host: 127.0.0.1", "Content-Type: application/json", f"Content-Length: {len(body)}")
    head = "\r\n".join((f"POST {path} HTTP/1.1", *fields, "", ""))

    async def load() -> Answers:
        loop = asyncio.get_running_loop()
        answers, end = Answers(), time.perf_counter() + seconds
        waits = [loop.create_future() for _ in range(clients)]
        for done in waits:
            await loop.create_connection(
                lambda done=done: _Client(head.encode() + body, end, answers, done), "127.0.0.1", port
            )
        await asyncio.gather(*waits)
        return answers

    return uvloop.run(load())

"""One HTTP exchange: the request as handlers see it, and their reply."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from argosy_runtime.errors import ErrorKind, ServingError, invalid
from argosy_runtime.protocol.http_request import too_long
from argosy_runtime.protocol.http_response import JSON_TYPE, encode_error

STATUS: dict[ErrorKind, int] = {
    ErrorKind.UNKNOWN: 400,
    ErrorKind.INTERNAL: 500,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.INVALID_ARG: 400,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.UNSUPPORTED: 501,
    ErrorKind.ALREADY_EXISTS: 400,
    ErrorKind.CANCELLED: 400,
}
Headers = Sequence[tuple[str, str]]
JSON_HEADERS: Headers = (("Content-Type", JSON_TYPE),)


class Stream(Protocol):
    """A response whose length is not known when it begins."""

    def start(self, status: int, headers: Headers) -> None:
        """Send status and headers."""

    async def write(self, chunk: bytes) -> None:
        """Send a piece of the body; waits while the client reads slower than it is written."""

    def end(self) -> None:
        """The body is complete."""


class Call:
    """A request. `headers` have lower-case names; `size` is the body's length even where too much to be kept."""

    __slots__ = ("_body", "headers", "method", "path", "size", "stream")

    def __init__(
        self, method: str, path: str, headers: dict[bytes, bytes], body: bytes, size: int, stream: Stream
    ) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.size = size
        self.stream = stream
        self._body = body

    def header(self, name: bytes) -> str | None:
        """A header by its lower-case name."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def body(self, limit: int) -> bytes:
        """The whole body. Raises INVALID_ARG where it was too long to be kept, naming `limit`, in bytes."""
        if self.size != len(self._body):
            raise invalid(too_long(self.size, limit))
        return self._body


@dataclass(slots=True)
class Reply:
    """A whole response: its body in chunks, its headers less Content-Length."""

    status: int
    chunks: Sequence[bytes] = ()
    headers: Headers = JSON_HEADERS


Application = Callable[[Call], Awaitable[Reply | None]]


def json_reply(body: bytes, status: int = 200) -> Reply:
    """A JSON body."""
    return Reply(status, (body,))


def empty_reply(status: int) -> Reply:
    """A status and nothing more."""
    return Reply(status, (), ())


def message_reply(status: int, message: str) -> Reply:
    """{"error": message}"""
    return Reply(status, (encode_error(message),))


def error_reply(error: ServingError) -> Reply:
    """The reply that tells of an error."""
    return message_reply(STATUS[error.kind], error.message)

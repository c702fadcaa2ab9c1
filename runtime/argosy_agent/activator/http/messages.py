"""HTTP/1.1 messages: the head of a request or a response, parsed, and the activator's own responses. Pure."""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from argosy_agent.activator.pending import NotForwardedError, Refusal

END = b"\r\n\r\n"
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "upgrade"})


class HeadError(Exception):
    """What came is no HTTP/1 message; the message says why."""


@dataclass(frozen=True, slots=True)
class Head:
    """A first line, and the headers as they came, in their order."""

    first: str
    headers: tuple[tuple[str, str], ...]

    def closing(self) -> bytes:
        """Return the head as it is forwarded: the connection ends with the message."""
        headers = [f"{name}: {value}" for name, value in self.headers if name.lower() not in _HOP_BY_HOP]
        return "\r\n".join([self.first, *headers, "Connection: close", "", ""]).encode("latin-1")

    @property
    def request(self) -> tuple[str, str]:
        """Method and target. Raises HeadError where the first line is no request's."""
        parts = self.first.split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[0] or not parts[1]:
            raise HeadError(f"{self.first[:80]!r} is no request line of HTTP/1.1")
        return parts[0], parts[1]

    @property
    def is_interim(self) -> bool:
        """Whether another head of the same answer follows. Raises HeadError where the first line is no status line."""
        parts = self.first.split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not (parts[1].isdecimal() and len(parts[1]) == 3):
            raise HeadError(f"{self.first[:80]!r} is no status line of HTTP/1.1")
        return parts[1].startswith("1")


def parse_head(data: bytes) -> Head:
    """Return the head in these bytes, which end with the empty line. Raises HeadError."""
    first, *lines = data.removesuffix(END).decode("latin-1").split("\r\n")
    return Head(first, tuple(map(_header, lines)))


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip() or not name.isprintable():
        raise HeadError(f"{line[:80]!r} is no header of HTTP/1.1")
    return name, value.strip()


_STATUSES = {
    Refusal.UNKNOWN: HTTPStatus.NOT_FOUND,
    Refusal.FULL: HTTPStatus.SERVICE_UNAVAILABLE,
    Refusal.TIMEOUT: HTTPStatus.SERVICE_UNAVAILABLE,
}
_AGAIN_S = 1


def refused(error: NotForwardedError) -> bytes:
    """Return why a request is not passed on."""
    return failed(_STATUSES[error.refusal], error.message)


def failed(status: HTTPStatus, message: str) -> bytes:
    """Return an error as Triton words it in JSON; 503 says that asking again helps."""
    return _answer(status, {"error": message})


def ok(value: dict[str, Any] | None = None) -> bytes:
    """Return status 200, with JSON or without a body."""
    return _answer(HTTPStatus.OK, value)


def metrics(text: str) -> bytes:
    """Return status 200 with the metrics."""
    return _message(HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", text.encode())


def json_answer(status: HTTPStatus, value: dict[str, Any]) -> bytes:
    """Return a response with JSON."""
    return _answer(status, value)


def _answer(status: HTTPStatus, value: dict[str, Any] | None) -> bytes:
    return _message(status, "application/json", b"" if value is None else json.dumps(value).encode())


def _message(status: HTTPStatus, kind: str, body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
    if body:
        lines.append(f"Content-Type: {kind}")
    if status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS):
        lines.append(f"Retry-After: {_AGAIN_S}")
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
    return head.encode() + body

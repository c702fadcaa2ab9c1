"""The activator's own answers, as complete HTTP/1.1 messages that end the connection. Pure."""

import json
from http import HTTPStatus
from typing import Any

from argosy_agent.activator.pending import NotForwardedError, Refusal

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


def _answer(status: HTTPStatus, value: dict[str, Any] | None) -> bytes:
    return _message(status, "application/json", b"" if value is None else json.dumps(value).encode())


def _message(status: HTTPStatus, kind: str, body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
    if body:
        lines.append(f"Content-Type: {kind}")
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        lines.append(f"Retry-After: {_AGAIN_S}")
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
    return head.encode() + body

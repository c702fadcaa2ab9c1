"""Complete responses, and the heads of all responses."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.protocol.http.response import JSON_TYPE, encode_error
from argosy_runtime.tensors import Data

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
TEXT_HEADERS: Headers = (("Content-Type", "text/plain"),)
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


@dataclass
class Reply:
    """A complete response: its body in chunks, its headers without Content-Length and those about the connection."""

    status: int
    chunks: Sequence[Data] = ()
    headers: Headers = JSON_HEADERS


def head_bytes(status: int, headers: Headers, framing: bytes) -> bytes:
    """Return a response's head; `framing` are the header lines about the length and the connection."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    return b"%b%b%b\r\n" % (_STATUS_LINES[status], lines.encode("latin-1"), framing)


def json_reply(body: bytes, status: int = 200) -> Reply:
    """Return a response with a JSON body."""
    return Reply(status, (body,))


def empty_reply(status: int) -> Reply:
    """Return a response without body, of Triton's type for it."""
    return Reply(status, (), TEXT_HEADERS)


def message_reply(status: int, message: str) -> Reply:
    """Return a response with the body {"error": message}."""
    return Reply(status, (encode_error(message),))


def error_reply(error: ServingError) -> Reply:
    """Return the response of an error."""
    return message_reply(STATUS[error.kind], error.message)

"""gRPC's statuses, and the trailers that carry them."""

from enum import IntEnum
from typing import Final

from argosy_runtime.errors import ErrorKind
from argosy_runtime.http2 import PreparedResponse, encode


class Status(IntEnum):
    """The codes of `grpc-status` that this server uses."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


BY_KIND: Final[dict[ErrorKind, Status]] = {
    ErrorKind.UNKNOWN: Status.UNKNOWN,
    ErrorKind.INTERNAL: Status.INTERNAL,
    ErrorKind.NOT_FOUND: Status.NOT_FOUND,
    ErrorKind.INVALID_ARG: Status.INVALID_ARGUMENT,
    ErrorKind.UNAVAILABLE: Status.UNAVAILABLE,
    ErrorKind.UNSUPPORTED: Status.UNIMPLEMENTED,
    ErrorKind.ALREADY_EXISTS: Status.ALREADY_EXISTS,
    ErrorKind.CANCELLED: Status.CANCELLED,
}

_HEAD: Final = ((b":status", b"200"), (b"content-type", b"application/grpc"))
ACCEPTED_ENCODINGS: Final = b"identity, deflate, gzip"
# Clients refuse trailers beyond 8 KiB by default, and a percent-encoded byte takes three.
_LONGEST_MESSAGE: Final = 6000
_PERCENT: Final = ord("%")

OK: Final = PreparedResponse(
    encode((*_HEAD, (b"grpc-accept-encoding", ACCEPTED_ENCODINGS))), encode(((b"grpc-status", b"0"),))
)
"""The head of a response with messages, and the trailers of one that succeeded."""


OK_GZIP: Final = PreparedResponse(
    encode((*_HEAD, (b"grpc-encoding", b"gzip"), (b"grpc-accept-encoding", ACCEPTED_ENCODINGS))), OK.trailers
)
"""The same for messages that are compressed."""


class RpcError(Exception):
    """A call that ends before its method has run."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def trailers(status: Status, message: str, alone: bool) -> bytes:
    """Return the header block that ends a call; `alone` where it is the whole response."""
    fields = [*_HEAD] if alone else []
    fields.append((b"grpc-status", b"%d" % status))
    if message:
        fields.append((b"grpc-message", percent_encoded(message)))
    return encode(fields)


def refused(code: int) -> bytes:
    """Return the header block of an HTTP response to a request that is not gRPC."""
    return encode(((b":status", b"%d" % code),))


def percent_encoded(message: str) -> bytes:
    """Return a message encoded for `grpc-message`, cut off where it is too long for clients."""
    encoded: list[bytes] = []
    size = 0
    for character in message:
        piece = b"".join(_byte(byte) for byte in character.encode("utf-8", "replace"))
        size += len(piece)
        if size > _LONGEST_MESSAGE:
            encoded.append(b"...")
            break
        encoded.append(piece)
    return b"".join(encoded)


def _byte(byte: int) -> bytes:
    return bytes((byte,)) if 0x20 <= byte < 0x7F and byte != _PERCENT else b"%%%02X" % byte

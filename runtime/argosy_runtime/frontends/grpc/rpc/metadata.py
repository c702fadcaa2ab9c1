"""The head of a gRPC call: its method, deadline, encoding and metadata."""

import base64
import binascii
import math
import re
from collections.abc import Iterator
from typing import Final

from argosy_runtime.http2 import RequestHead
from argosy_runtime.protocol.http.request import DEFAULT_MAX_INPUT_SIZE

from .framing import ENCODINGS
from .status import RpcError, Status

_TRANSPORT: Final = frozenset(
    (b"te", b"content-type", b"content-length", b"grpc-encoding", b"grpc-accept-encoding", b"grpc-timeout")
)
_SECONDS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_TIMEOUT: Final = re.compile(r"(\d{1,8})([HMSmun])")
NO_TIMEOUT: Final = math.inf
_BINARY: Final = "-bin"


class CallHead:
    """What calls with the same head have in common. `timeout` is in seconds, infinite where there is none; `limit` is
    the largest size of a decompressed message, in bytes, `forwarded` the headers that become parameters, once that is
    known.
    """

    __slots__ = ("_fields", "accepts_gzip", "encoding", "forwarded", "limit", "timeout")

    def __init__(self, head: RequestHead, limit: int = DEFAULT_MAX_INPUT_SIZE) -> None:
        self.limit = limit
        self.forwarded: dict[str, str] | None = None
        fields = dict(head.fields)
        self._fields = head.fields
        self.encoding = fields.get(b"grpc-encoding", b"identity")
        accepted = fields.get(b"grpc-accept-encoding", b"").split(b",")
        self.accepts_gzip = b"gzip" in [name.strip() for name in accepted]
        if self.encoding not in ENCODINGS:
            name = self.encoding.decode("latin-1")
            raise RpcError(Status.UNIMPLEMENTED, f"messages compressed with '{name}' are not supported")
        self.timeout = _timeout(fields.get(b"grpc-timeout"))

    def metadata(self) -> Iterator[tuple[str, str]]:
        """Yield the client's own metadata; binary values as one character a byte."""
        for name, value in self._fields:
            if name not in _TRANSPORT:
                key = name.decode("latin-1")
                yield key, (_binary(value) if key.endswith(_BINARY) else value).decode("latin-1")

    @property
    def protocol(self) -> str:
        """GRPC."""
        return "GRPC"

    def header(self, name: str) -> str | None:
        """Return the first value under a name, which is in lower case, or None; a character a byte."""
        return next((value for key, value in self.metadata() if key == name), None)

    def field(self, name: str) -> None:
        """Return None: what a message has is the request's own."""


def _timeout(text: bytes | None) -> float:
    if text is None:
        return NO_TIMEOUT
    match = _TIMEOUT.fullmatch(text.decode("latin-1"))
    if match is None:
        raise RpcError(Status.INTERNAL, "grpc-timeout is no time")
    return int(match[1]) * _SECONDS[match[2]]


def _binary(value: bytes) -> bytes:
    try:
        return base64.b64decode(value + b"=" * (-len(value) % 4))
    except binascii.Error:
        return value


def is_grpc(content_type: bytes) -> bool:
    """Return whether a request with this content type is a gRPC call: application/grpc, +proto, ;charset=…"""
    return content_type.startswith(b"application/grpc") and content_type[16:17] in (b"", b"+", b";")

"""HTTP/2 for a server: RFC 9113 and HPACK (RFC 7541), in pure Python.

`connection` is the state machine of one connection: bytes in, events out, bytes to send. It does no I/O and reads no
clock. `protocol` runs it on an asyncio transport. An `Application` is served: it routes the head of a request once for
each distinct header block, and gets a `Stream` for every request.
"""

from .application import Application, Route
from .conduct import Limits
from .errors import ErrorCode, PeerError
from .headers import PreparedResponse, RequestHead
from .hpack.encoder import encode
from .keepalive import KeepAliveRules
from .protocol import Http2Protocol
from .streams.stream import Receiver, Stream

__all__ = [
    "Application",
    "PeerError",
    "ErrorCode",
    "Http2Protocol",
    "KeepAliveRules",
    "Limits",
    "PreparedResponse",
    "Receiver",
    "RequestHead",
    "Route",
    "Stream",
    "encode",
]

"""What a connection serves: the seam between HTTP/2 and what speaks over it.

header block ──(once for each distinct one)──▶ Application.route(head) ──▶ Route
request      ──(every time)──▶ Route.open(stream) ──▶ Receiver ◀── its data, its end, its reset
"""

from typing import TYPE_CHECKING, Protocol

from .headers.request import RequestHead

if TYPE_CHECKING:
    from .streams import Stream


class Receiver(Protocol):
    """One request as it comes in. Whatever it raises ends its stream, never its connection."""

    def received(self, data: bytes, ended: bool) -> None:
        """More of the body, b"" at times; `ended`: there is no more. Credit is returned by `Stream.consumed`."""

    def reset(self) -> None:
        """The peer has given the request up, or is gone. Nothing can be answered any more."""

    def writable(self) -> None:
        """More may be sent, after `Stream.send` said otherwise."""

    def failed(self, error: Exception) -> None:
        """What this receiver raised; a last chance to answer. What it raises now resets the stream."""


class Route(Protocol):
    """What a request's head says should happen to it; shared by all requests whose header blocks are the same bytes."""

    def open(self, stream: "Stream") -> Receiver:
        """A request begins."""


class Application(Protocol):
    """What is served."""

    def route(self, head: RequestHead) -> Route:
        """Return where requests with this head go. Never raises: an unwanted request has a route that refuses it."""

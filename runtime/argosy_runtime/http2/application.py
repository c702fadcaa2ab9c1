"""The interface between HTTP/2 and the protocol over it.

header block ──(once for each distinct one)──▶ Application.route(head) ──▶ Route
request      ──(every time)──▶ Route.open(stream) ──▶ Receiver ◀── its data, its end, its reset
"""

from typing import Protocol

from .headers import RequestHead
from .streams.stream import Receiver, Stream


class Route(Protocol):
    """The way of all requests whose header blocks are the same bytes."""

    def open(self, stream: Stream) -> Receiver:
        """Begin a request. Return the receiver of its body."""


class Application(Protocol):
    """The application behind a connection."""

    def route(self, head: RequestHead) -> Route:
        """Return the route of requests with this head. Never raises: a request may have a route that refuses it."""

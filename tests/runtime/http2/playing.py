"""Both ends of a connection without a socket: hyper-h2 as the client, an application that echoes, and a clock."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection

from argosy_runtime.http2 import KeepAliveRules, Limits, PreparedResponse, RequestHead, Stream, encode
from argosy_runtime.http2.connection import Connection

PREPARED = PreparedResponse(encode([(b":status", b"200")]), encode([(b"status", b"0")]))
HEAD = [(":method", "POST"), (":scheme", "http"), (":path", "/echo"), (":authority", "here")]


def head(path: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the header fields of a request."""
    return [(name, path if name == ":path" else value) for name, value in HEAD] + list(more)


class Echo:
    """Answers a request's body with itself: when asked to, or at its end."""

    def __init__(self, stream: Stream, application: "EchoApplication") -> None:
        self.stream = stream
        self.application = application
        self.body: list[bytes] = []
        self.resets = 0
        self.resumed = 0
        self.concluded = 0
        self.errors: list[Exception] = []

    def received(self, data: bytes, ended: bool) -> None:
        self.body.append(data)
        self.stream.consumed(len(data))
        if ended:
            self.application.answer_later(self)

    def answer(self) -> None:
        """Answer now."""
        full = b"".join(self.body)
        self.stream.respond(PREPARED, [full[:3], full[3:]], len(full))

    def reset(self) -> None:
        self.resets += 1

    def writable(self) -> None:
        self.resumed += 1

    def conclude(self) -> None:
        self.concluded += 1

    def failed(self, error: Exception) -> None:
        self.errors.append(error)
        self.stream.end(encode([(b":status", b"500")]))


class Raising(Echo):
    """A receiver with a fault."""

    def received(self, data: bytes, ended: bool) -> None:
        raise ValueError("a fault")


class Speechless(Raising):
    """One that cannot even say so."""

    def failed(self, error: Exception) -> None:
        raise error


class Streaming(Echo):
    """Sends every piece of a body back as it comes, one at a time: the next is taken once the last is on its way."""

    def __init__(self, stream: Stream, application: "EchoApplication") -> None:
        super().__init__(stream, application)
        self.queued: deque[bytes] = deque()
        self.ended = False
        self.may_send = True

    def received(self, data: bytes, ended: bool) -> None:
        self.queued.append(data)
        self.ended = ended
        self.stream.start(PREPARED.head)
        self._go_on()

    def writable(self) -> None:
        self.may_send = True
        self._go_on()

    def _go_on(self) -> None:
        while self.may_send and self.queued:
            piece = self.queued.popleft()
            self.may_send = self.stream.send([piece], len(piece))
            self.stream.consumed(len(piece))
        if self.ended and not self.queued:
            self.stream.end(PREPARED.trailers)


KINDS: dict[bytes, Callable[[Stream, "EchoApplication"], Echo]] = {
    b"/echo": Echo,
    b"/stream": Streaming,
    b"/raise": Raising,
    b"/speechless": Speechless,
}


class EchoRoute:
    """The route of requests with one head."""

    def __init__(self, application: "EchoApplication", seen: RequestHead) -> None:
        self.application = application
        self.kind = KINDS.get(seen.path, Echo)

    def open(self, stream: Stream) -> Echo:
        receiver = self.kind(stream, self.application)
        self.application.opened.append(receiver)
        return receiver


@dataclass
class EchoApplication:
    """An application that records requests. With `waits` they are answered when a test says so."""

    waits: bool = False
    heads: list[RequestHead] = field(default_factory=list)
    opened: list[Echo] = field(default_factory=list)
    due: list[Echo] = field(default_factory=list)

    def route(self, head: RequestHead) -> EchoRoute:
        self.heads.append(head)
        return EchoRoute(self, head)

    def answer_later(self, receiver: Echo) -> None:
        if self.waits:
            self.due.append(receiver)
        else:
            receiver.answer()


class Play:
    """A connection and its client; `carry` takes bytes to and fro until both are silent."""

    def __init__(self, limits: Limits | None = None, rules: KeepAliveRules | None = None, waits: bool = False) -> None:
        self.application = EchoApplication(waits)
        self.now = 0.0
        self.wakes = 0
        self.server = Connection(
            self.application, limits or Limits(), rules or KeepAliveRules(max_ping_strikes=0), self._wake, self.now
        )
        self.server.begin()
        self.client = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self.client.initiate_connection()
        self.events: list[Any] = []
        self.sent = bytearray()

    def _wake(self) -> None:
        self.wakes += 1

    def feed(self, data: bytes) -> None:
        """Send bytes to the server."""
        self.server.receive(data, self.now)

    def output(self) -> bytes:
        """Return bytes of the server."""
        data = b"".join(self.server.output.take())
        self.sent += data
        if not self.server.output.paused:
            self.server.streams.resume()
        return data

    def carry(self) -> list[Any]:
        """Return what the client received."""
        heard: list[Any] = []
        while True:
            sent = self.client.data_to_send()
            if sent:
                self.feed(sent)
            answered = self.output()
            if not sent and not answered:
                break
            heard += self.client.receive_data(answered)
        self.events += heard
        return heard

    def ask(self, path: str = "/echo", body: bytes | None = b"", *more: tuple[str, str]) -> int:
        """Begin a request; with a body, end it. Returns its stream."""
        stream_id: int = self.client.get_next_available_stream_id()
        self.client.send_headers(stream_id, head(path, *more))
        if body is not None:
            self.client.send_data(stream_id, body, end_stream=True)
        return stream_id

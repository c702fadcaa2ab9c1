"""A connection on an asyncio transport."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from .application import Application
from .conduct import Limits
from .connection import Connection
from .errors import ErrorCode
from .keepalive import Action, KeepAlive, KeepAliveRules

# Smaller output is copied into one piece, because every piece of a write costs.
_JOIN_BELOW: Final = 1 << 16
_ALPN: Final = "h2"


class Http2Protocol(asyncio.Protocol):
    """The connection of one client. The answers of one pass of the event loop leave in one write.

    Over TLS the client must have agreed on h2; without, it must begin with HTTP/2 at once. `gone` is called with this
    protocol when the connection is lost.
    """

    def __init__(
        self,
        application: Application,
        loop: asyncio.AbstractEventLoop,
        gone: Callable[["Http2Protocol"], None],
        limits: Limits,
        rules: KeepAliveRules,
    ) -> None:
        now = loop.time()
        self.connection = Connection(application, limits, rules, self._wake, now)
        self._loop = loop
        self._clock = loop.time
        self._gone = gone
        self._rules = rules
        self._keepalive = KeepAlive(rules, now)
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._closed = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send what this side allows to a client that has connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._closed = False
        tls: Any = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != _ALPN:
            self._transport.abort()
            return
        self.connection.begin()
        self._check()

    def data_received(self, data: bytes) -> None:
        """Act on what the client has sent, and answer."""
        now = self._clock()
        self._keepalive.heard(now)
        self.connection.receive(data, now)
        self._flush()

    def eof_received(self) -> bool | None:
        """Close: the client could still read, but gRPC clients that end their side are gone."""
        return None

    def connection_lost(self, error: Exception | None) -> None:
        """Cancel the requests of a client that is gone."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.connection.lose()
        self._gone(self)

    def pause_writing(self) -> None:
        """Read nothing more of a client that does not read its answers, until it does."""
        self.connection.output.paused = True
        self._heed_reader()
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on reading and writing, because the client has read."""
        self.connection.output.paused = False
        self._heed_reader()
        if not (self._closed or self._transport.is_closing()):
            self._transport.resume_reading()
        self._wake()

    def drain(self) -> None:
        """Have the client send its next requests on another connection."""
        self.connection.drain()

    def finish(self) -> None:
        """Take no more requests, and close once those there are answered."""
        self.connection.finish()

    def leave(self) -> None:
        """Send the client away: at once where it has no requests, or else once they are answered."""
        if self.connection.streams:
            self.connection.drain()
        else:
            self.connection.finish()

    def abort(self) -> None:
        """Abort the connection, and drop data that the client has not read."""
        if not self._closed:
            self._transport.abort()

    def _wake(self) -> None:
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        connection = self.connection
        pieces = connection.output.take()
        if self._closed:
            return
        if pieces:
            if sum(map(len, pieces)) < _JOIN_BELOW:
                self._transport.write(b"".join(pieces))
            else:
                self._transport.writelines(pieces)
        if connection.streams.has_waiting:
            connection.streams.resume()
        if connection.closing and not self._transport.is_closing():
            self._close()

    def _close(self) -> None:
        """Close once all is written, and cut off a client that does not read it."""
        for piece in self.connection.output.take():
            self._transport.write(piece)
        self._transport.close()
        self._rearm(self._rules.closing, self.abort)

    def _rearm(self, delay: float, action: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if self._closed else self._loop.call_later(delay, action)

    def _heed_reader(self) -> None:
        unread = self._transport.get_write_buffer_size() if self.connection.output.paused else 0
        self._keepalive.reads(self._clock(), unread)

    def _check(self) -> None:
        """Do what the connection's timers ask for, and set the next."""
        if self._closed or self.connection.closing:
            return
        now, connection = self._clock(), self.connection
        unfinished = connection.unfinished
        if connection.output.paused:
            unfinished = None  # Nothing is read that would finish it.
            self._heed_reader()
        connection.streams.give_up_stalled(now, self._rules.unread)
        action, due = self._keepalive.check(now, connection.greeted, unfinished, bool(connection.streams))
        self._rearm(max(due - now, 0.001), self._check)
        if action is Action.PING:
            connection.ping()
        elif action is Action.SEND_AWAY:
            self.leave()
        elif action is Action.CUT:
            self.abort()
        elif action is Action.GIVE_UP:
            connection.fail(ErrorCode.NO_ERROR, "the client has been silent for too long")

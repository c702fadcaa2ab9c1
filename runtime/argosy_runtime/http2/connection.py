"""The server's side of one HTTP/2 connection as a state machine: bytes in, events out, bytes to send in `output`.

It does no I/O and reads no clock. Its driver passes in bytes (`receive`), sends what is in `output` when woken and
after `receive`, sets whether the transport takes more (`output.paused`, `streams.resume`), and closes the transport
once `closing` is set.
"""

import logging
from collections.abc import Callable
from typing import Final

from . import frames
from .application import Application
from .conduct import Conduct, Limits
from .control import HANDLERS, greeting
from .errors import ErrorCode, MalformedError, PeerError, protocol_error
from .header_blocks import HeaderBlocks, Opening
from .headers import check_trailers
from .keepalive import KeepAliveRules
from .reader import FrameReader
from .streams.inbound import Inbound
from .streams.output import Output
from .streams.shutdown import Shutdown
from .streams.stream import Stream
from .streams.table import Streams

_log: Final = logging.getLogger("argosy.http2")


class Connection(FrameReader):
    """One connection. `wake` is called when `output` gets data outside of `receive`."""

    __slots__ = ("_blocks", "_conduct", "_limits", "_opened", "_shutdown", "inbound", "output", "streams")

    def __init__(
        self, application: Application, limits: Limits, rules: KeepAliveRules, wake: Callable[[], None], now: float
    ) -> None:
        super().__init__(limits.frame_size)
        self._conduct = Conduct(limits, rules, now)
        self.output = Output(wake, limits.unsent_limit, self._conduct)
        self.inbound = Inbound(self.output, limits)
        self._shutdown = Shutdown(self.output)
        self.streams = Streams(self.output, self.inbound, self._shutdown, limits.stream_window)
        self._opened = self.streams.opened
        self._limits = limits
        self._blocks = HeaderBlocks(application, limits)

    def begin(self) -> None:
        """Send what this side allows."""
        self.output.write(greeting(self._limits))

    def receive(self, data: bytes, now: float) -> None:
        """Process data from the client. Never raises. The caller must then send `output`."""
        if self._shutdown.closing:
            return
        self._conduct.now = now
        self.output.hold()
        try:
            self.feed(data)
        except PeerError as fault:
            self.fail(fault.code, fault.message)

    @property
    def unfinished(self) -> tuple[int, int] | None:
        """The header block and the frame that have begun and not ended; None for neither."""
        begun = (self._blocks.pending, self.unfinished_frame)
        return begun if any(begun) else None

    # Heads of requests

    def on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        """Begin a request, or end one by its trailers. Raises PeerError."""
        if flags == frames.END_HEADERS and not self._blocks.pending:
            opening = self._blocks.openings.get(payload)
            if opening is not None and stream_id > self._shutdown.last_stream and stream_id & 1:
                self._open(stream_id, opening, False)
                return
        self._headers(flags, stream_id, payload)

    def _headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._check_no_block()
        if not stream_id & 1:
            raise protocol_error("HEADERS on a stream that clients do not open")
        block = self._blocks.begin(flags, stream_id, payload)
        if block is not None:
            self._block(stream_id, block, bool(flags & frames.END_STREAM))

    def _check_no_block(self) -> None:
        if self._blocks.pending:
            raise protocol_error("CONTINUATION must come next")

    def _continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not self._blocks.pending:
            raise protocol_error("CONTINUATION of nothing")
        block = self._blocks.go_on(flags, stream_id, payload)
        if block is not None:
            self._block(stream_id, block, self._blocks.ends_stream)

    def _block(self, stream_id: int, block: bytes, ended: bool) -> None:
        stream = self._opened.get(stream_id)
        if stream is not None or stream_id in self.inbound.abandoned:
            self._trailers(stream, block, stream_id, ended)
        elif stream_id <= self._shutdown.last_stream:
            raise PeerError(ErrorCode.STREAM_CLOSED, "HEADERS on a closed stream")
        else:
            self._request(stream_id, block, ended)

    def _request(self, stream_id: int, block: bytes, ended: bool) -> None:
        try:
            opening = self._blocks.opening(block)
        except MalformedError:
            self._refuse(stream_id, ErrorCode.PROTOCOL_ERROR, ended)
        else:
            self._open(stream_id, opening, ended)

    def _open(self, stream_id: int, opening: Opening, ended: bool) -> None:
        if self._shutdown.refusing or len(self._opened) >= self._limits.streams:
            self._refuse(stream_id, ErrorCode.REFUSED_STREAM, ended)
            return
        self._shutdown.last_stream = stream_id
        stream = self.streams.open(stream_id, opening.declared, ended)
        try:
            receiver = opening.route.open(stream)
        except Exception as error:
            _log.error("a request could not be begun", exc_info=error)
            stream.reset(ErrorCode.INTERNAL_ERROR)
            return
        if not stream.closed:
            stream.receiver = receiver
            if ended:
                self.streams.deliver(stream, b"", True)

    def _refuse(self, stream_id: int, code: ErrorCode, ended: bool) -> None:
        self._shutdown.last_stream = stream_id
        self._conduct.count_waste()
        self.streams.send_reset(stream_id, code, ended)

    def _trailers(self, stream: Stream | None, block: bytes, stream_id: int, ended: bool) -> None:
        fields = self._blocks.fields(block)
        if stream is None:
            if ended:
                self.inbound.abandoned.remove(stream_id)
            return
        if stream.peer_ended:
            self.streams.break_off(stream, ErrorCode.STREAM_CLOSED)
            return
        try:
            check_trailers(fields)
        except MalformedError:
            ended = False
        if ended:
            self.streams.deliver(stream, b"", True)
        else:
            self.streams.break_off(stream, ErrorCode.PROTOCOL_ERROR)

    # Bodies of requests, and all other frames

    def on_data(self, flags: int, stream_id: int, payload: bytes, size: int) -> None:
        """Pass a piece of a body on to its request. Raises PeerError."""
        self.inbound.spend(size)
        stream = self._opened.get(stream_id)
        if stream is None or stream.peer_ended or self._blocks.pending:
            self._check_no_block()
            self.streams.check_opened(stream_id, "DATA")
            if stream is not None:
                raise PeerError(ErrorCode.STREAM_CLOSED, "DATA behind the end of its stream")
            self.inbound.discard(flags, stream_id)
            return
        stream.credit -= size
        if stream.credit < 0:
            self.streams.break_off(stream, ErrorCode.FLOW_CONTROL_ERROR)
            return
        ended = flags & frames.END_STREAM != 0
        if not payload and not ended:
            self._conduct.count_waste()
        self.streams.deliver(stream, payload, ended)
        if size > len(payload):
            stream.consumed(size - len(payload))

    def on_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        """Act on a frame that carries neither head nor body, or goes on with a head. Raises PeerError."""
        if kind == frames.CONTINUATION:
            self._continuation(flags, stream_id, payload)
            return
        self._check_no_block()
        handler = HANDLERS.get(kind)
        if handler is None:
            self._conduct.count_waste()
        else:
            handler(self.streams, flags, stream_id, payload)

    # The end

    @property
    def closing(self) -> bool:
        """Whether reading has ended. The caller closes the transport after it has sent `output`."""
        return self._shutdown.closing

    def ping(self) -> None:
        """Send a PING; anything that the client sends answers it."""
        self.output.write(frames.ping(bytes(8)))

    def drain(self) -> None:
        """Ask the client to use another connection. Requests that arrive in the meantime are answered."""
        self._shutdown.drain()

    def finish(self) -> None:
        """Take no more requests, have those end that could go on for ever, and close once all are answered."""
        self._shutdown.finish(not self._opened)
        self.streams.conclude()

    def fail(self, code: ErrorCode, message: str) -> None:
        """Send the reason, and close; requests under way are given up."""
        if not self._shutdown.closing:
            self._shutdown.fail(code, message)
            self.streams.lose()

    def lose(self) -> None:
        """Give up all requests, because the client is gone."""
        self._shutdown.closing = True
        self.streams.lose()

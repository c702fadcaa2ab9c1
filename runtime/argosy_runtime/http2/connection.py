"""The server's side of one HTTP/2 connection as a state machine: bytes in, events out, bytes to send in `output`.

It does no I/O and knows no time but what it is told. Whoever drives it gives it bytes (`receive`), sends what is in
`output` when woken and after `receive`, says whether the transport takes more (`output.paused`, `resume`), and closes
the transport where `closing` is set.
"""

import logging
from collections.abc import Callable
from typing import Final

from . import frames
from .application import Application, Receiver
from .control import HANDLERS, greeting
from .errors import ErrorCode, MalformedError, PeerError, protocol_error
from .headers.blocks import HeaderBlocks, Opening
from .headers.request import check_trailers
from .inbound import Inbound
from .keepalive import KeepAliveRules, PingStrikes
from .limits import Limits, Waste
from .output import Output
from .reader import FrameReader
from .streams import Stream

_log: Final = logging.getLogger("argosy.http2")
# What a client has reason to send for each DATA frame that it reads: updates of two windows, a ping.
_FRAMES_FOR_DATA: Final = 3
_DRAIN_PING: Final = b"draining"


class Connection:
    """One connection. `wake` is called when something is to be sent outside of `receive`."""

    __slots__ = (
        "_announced",
        "_blocks",
        "_given_up",
        "_last",
        "_leaving",
        "_limits",
        "_reader",
        "_refusing",
        "_waste",
        "closing",
        "inbound",
        "now",
        "output",
        "pings",
        "stream_window",
        "streams",
    )

    def __init__(
        self, application: Application, limits: Limits, rules: KeepAliveRules, wake: Callable[[], None], now: float
    ) -> None:
        self.output = Output(wake, limits.unsent_limit)
        self.closing = False
        """Nothing is read any more; once `output` is sent the transport is to be closed."""
        self.streams: dict[int, Stream] = {}
        self.stream_window = limits.stream_window
        self.now = now
        self.pings = PingStrikes(rules)
        self.inbound = Inbound(self, limits)
        self._limits = limits
        self._last = 0
        self._given_up: list[Receiver | None] = []
        self._waste = Waste(limits, now)
        self._blocks = HeaderBlocks(application, limits)
        self._reader = FrameReader(self, limits.frame_size)
        self._leaving = False
        self._announced = False
        self._refusing = False

    # Bytes in

    def begin(self) -> None:
        """Say what this side allows."""
        self.output.write(greeting(self._limits))

    def receive(self, data: bytes, now: float) -> None:
        """Act on what the client sent; whatever it is, this does not raise. `output` is then to be sent."""
        if self.closing:
            return
        self.now = now
        self.output.hold()
        try:
            self._reader.feed(data)
        except PeerError as fault:
            self.fail(fault.code, fault.message)

    @property
    def greeted(self) -> bool:
        """Whether the client has begun as HTTP/2 wants it."""
        return self._reader.greeted

    @property
    def unfinished(self) -> tuple[int, int] | None:
        """Which header block or frame has begun and not ended; None for neither."""
        begun = (self._blocks.pending, self._reader.unfinished)
        return begun if any(begun) else None

    # Heads of requests

    def on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        """See `FrameSink`."""
        if flags == frames.END_HEADERS and not self._blocks.pending:
            opening = self._blocks.openings.get(payload)
            if opening is not None and stream_id > self._last and stream_id & 1:
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
        stream = self.streams.get(stream_id)
        if stream is not None or stream_id in self.inbound.abandoned:
            self._trailers(stream, block, stream_id, ended)
        elif stream_id <= self._last:
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
        if self._refusing or len(self.streams) >= self._limits.streams:
            self._refuse(stream_id, ErrorCode.REFUSED_STREAM, ended)
            return
        self._last = stream_id
        stream = Stream(self, stream_id, opening.declared)
        stream.peer_ended = ended
        self.streams[stream_id] = stream
        try:
            receiver = opening.route.open(stream)
        except Exception as error:
            _log.error("a request could not be begun", exc_info=error)
            self.drop(stream, ErrorCode.INTERNAL_ERROR)
            return
        if not stream.closed:
            stream.receiver = receiver
            if ended:
                self._deliver(stream, b"", True)

    def _refuse(self, stream_id: int, code: ErrorCode, ended: bool) -> None:
        self._last = stream_id
        self.count_waste()
        self._send_reset(stream_id, code, ended)

    def _trailers(self, stream: Stream | None, block: bytes, stream_id: int, ended: bool) -> None:
        fields = self._blocks.fields(block)
        if stream is None:
            if ended:
                self.inbound.abandoned.remove(stream_id)
            return
        if stream.peer_ended:
            self.break_off(stream, ErrorCode.STREAM_CLOSED)
            return
        try:
            check_trailers(fields)
        except MalformedError:
            ended = False
        if ended:
            self._deliver(stream, b"", True)
        else:
            self.break_off(stream, ErrorCode.PROTOCOL_ERROR)

    # Bodies of requests

    def on_data(self, flags: int, stream_id: int, payload: bytes, size: int) -> None:
        """See `FrameSink`."""
        self.inbound.spend(size)
        stream = self.streams.get(stream_id)
        if stream is None or stream.peer_ended or self._blocks.pending:
            self._check_no_block()
            self.check_opened(stream_id, "DATA")
            self.inbound.heed_unwanted(flags, stream_id, stream)
            return
        stream.credit -= size
        if stream.credit < 0:
            self.break_off(stream, ErrorCode.FLOW_CONTROL_ERROR)
            return
        ended = flags & frames.END_STREAM != 0
        if not payload and not ended:
            self.count_waste()
        self._deliver(stream, payload, ended)
        if size > len(payload):
            stream.consumed(size - len(payload))

    def _deliver(self, stream: Stream, payload: bytes, ended: bool) -> None:
        if stream.declared >= 0:
            stream.declared -= len(payload)
            if stream.declared < 0 or (ended and stream.declared):
                self.break_off(stream, ErrorCode.PROTOCOL_ERROR)
                return
        stream.peer_ended = ended
        if self.inbound.is_deferred(stream):
            self.inbound.defer(stream, payload)
        else:
            self._hand_on(stream, payload)

    def _hand_on(self, stream: Stream, payload: bytes) -> None:
        receiver = stream.receiver
        if receiver is None:
            return
        try:
            receiver.received(payload, stream.peer_ended)
        except Exception as error:
            self._failed(stream, receiver, error)

    def _failed(self, stream: Stream, receiver: Receiver, error: Exception) -> None:
        """A receiver raised: its stream ends, with an answer if the receiver has one."""
        _log.error("a request failed unexpectedly", exc_info=error)
        try:
            receiver.failed(error)
        except Exception:
            stream.reset(ErrorCode.INTERNAL_ERROR)

    # Other frames

    def on_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        """See `FrameSink`."""
        if kind == frames.CONTINUATION:
            self._continuation(flags, stream_id, payload)
            return
        self._check_no_block()
        handler = HANDLERS.get(kind)
        if handler is None:
            self.count_waste()
        else:
            handler(self, flags, stream_id, payload)

    def count_waste(self) -> None:
        """The client had something done in vain. Raises PeerError beyond what is tolerated."""
        self._waste.add(self.now)

    def check_opened(self, stream_id: int, what: str) -> None:
        """Raise PeerError unless the client has opened this stream at some time."""
        if not stream_id & 1 or stream_id > self._last:
            raise protocol_error(f"{what} on a stream that is not open")

    def given_up(self, stream_id: int) -> None:
        """The client has reset a stream."""
        self.inbound.abandoned.remove(stream_id)
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._tell_reset(self._remove(stream))

    def break_off(self, stream: Stream, code: ErrorCode) -> None:
        """The client broke a rule on a stream: reset it, and have its receiver stop."""
        self.count_waste()
        self._tell_reset(self.drop(stream, code))

    # Responses

    def sent_data(self) -> None:
        """A client that is sent something has reason to send something back."""
        self._waste.repay(_FRAMES_FOR_DATA)
        self.pings.forgive()

    def answered(self, stream: Stream) -> None:
        """A stream's response is complete."""
        self.sent_data()
        if not stream.peer_ended:
            self._send_reset(stream.id, ErrorCode.NO_ERROR, False)
        self._remove(stream)
        self.output.wake()
        if self._leaving:
            self.drain()

    def drop(self, stream: Stream, code: ErrorCode) -> Receiver | None:
        """Reset a stream without a word to its receiver, which is returned."""
        self._send_reset(stream.id, code, stream.peer_ended)
        return self._remove(stream)

    def give_up(self, stream: Stream) -> None:
        """Reset a stream whose client makes no room for its answer; its receiver hears of it with the next `resume`."""
        self._given_up.append(self.drop(stream, ErrorCode.ENHANCE_YOUR_CALM))

    def give_up_stalled(self, now: float, patience: float) -> None:
        """Give up the streams for which the client has made no room in `patience` seconds."""
        for stream in tuple(self.output.waiting.values()):
            if stream.is_stalled(now, patience):
                self.give_up(stream)

    def _remove(self, stream: Stream) -> Receiver | None:
        receiver = stream.close()
        self.streams.pop(stream.id, None)
        self.output.remove(stream.id)
        if stream.deferred is not None:
            self.inbound.remove(stream)
        if self._refusing:
            self._close_if_idle()
        return receiver

    def _tell_reset(self, receiver: Receiver | None) -> None:
        try:
            if receiver is not None:
                receiver.reset()
        except Exception as error:
            _log.error("a request could not be cancelled", exc_info=error)

    def _send_reset(self, stream_id: int, code: ErrorCode, ended: bool) -> None:
        self.output.write(frames.rst_stream(stream_id, code))
        if not ended:
            self.inbound.abandon(stream_id)

    @property
    def has_waiting(self) -> bool:
        """Whether `resume` has something to do."""
        output = self.output
        return bool(output.stalled or output.waiting or self.inbound.deferred or self._given_up)

    def resume(self) -> None:
        """The transport takes more: send what waits, and let producers and deferred requests go on."""
        output = self.output
        if output.waiting:
            output.unblock()
        while self._given_up:
            self._tell_reset(self._given_up.pop())
        while (deferred := self.inbound.next()) is not None:
            self._hand_on(deferred, self.inbound.take(deferred))
        for stream in tuple(output.stalled.values()):
            receiver = stream.receiver
            if receiver is not None and stream.may_go_on() and output.stalled.pop(stream.id, None) is not None:
                try:
                    receiver.writable()
                except Exception as error:
                    self._failed(stream, receiver, error)

    # The end

    def ping(self) -> None:
        """Ask whether the client is there; anything it sends says so."""
        self.output.write(frames.ping(bytes(8)))

    def pinged(self, payload: bytes) -> None:
        """The client has answered a PING."""
        if self._announced and payload == _DRAIN_PING:
            self.finish()

    def drain(self) -> None:
        """Have the client go elsewhere with its next requests; those that come meanwhile are answered.

        A client that has asked nothing yet is told with its first answer, or it might never be answered.
        """
        self._leaving = True
        if self._announced or self._refusing or self.closing or not self._last:
            return
        self._announced = True
        self.output.write(frames.goaway(frames.MAX_STREAM_ID, ErrorCode.NO_ERROR) + frames.ping(_DRAIN_PING))

    def finish(self) -> None:
        """Take no more requests, and close once those there are answered."""
        if not self._refusing and not self.closing:
            self._refusing = True
            self.output.write(frames.goaway(self._last, ErrorCode.NO_ERROR))
            self._close_if_idle()

    def fail(self, code: ErrorCode, message: str) -> None:
        """Say why, and close; requests under way are given up."""
        if not self.closing:
            self.output.write(frames.goaway(self._last, code, message))
            self.lose()

    def lose(self) -> None:
        """The client is gone."""
        self.closing = True
        while self._given_up:
            self._tell_reset(self._given_up.pop())
        for stream in tuple(self.streams.values()):
            self._tell_reset(self._remove(stream))

    def _close_if_idle(self) -> None:
        if not self.streams:
            self.closing = True
            self.output.wake()

"""The open streams of a connection: how each reaches its receiver, how each ends, and which goes on when."""

import logging
from collections.abc import Callable
from typing import Final

from argosy_runtime.http2 import frames
from argosy_runtime.http2.errors import ErrorCode, protocol_error

from .inbound import Inbound
from .output import Output
from .shutdown import Shutdown
from .stream import Receiver, Stream

_log: Final = logging.getLogger("argosy.http2")


class Streams:
    """The streams by their ids. Each is of a request whose response is not complete."""

    __slots__ = (
        "_dropped_receivers",
        "_on_answered",
        "_on_dropped",
        "_window",
        "conduct",
        "inbound",
        "opened",
        "output",
        "shutdown",
    )

    def __init__(self, output: Output, inbound: Inbound, shutdown: Shutdown, window: int) -> None:
        self.output = output
        self.conduct = output.conduct
        self.inbound = inbound
        self.shutdown = shutdown
        self.opened: dict[int, Stream] = {}
        self._window = window
        self._dropped_receivers: list[Receiver | None] = []
        self._on_answered: Callable[[Stream], None] = self._answered
        self._on_dropped: Callable[[Stream, ErrorCode, bool], None] = self._dropped

    def __len__(self) -> int:
        return len(self.opened)

    def __contains__(self, stream_id: int) -> bool:
        return stream_id in self.opened

    # Requests

    def open(self, stream_id: int, declared: int, ended: bool) -> Stream:
        """Add a stream, whose body is of `declared` bytes (-1: unknown); `ended` where it has none."""
        stream = Stream(self.output, stream_id, self._window, declared, self._on_answered, self._on_dropped)
        stream.peer_ended = ended
        self.opened[stream_id] = stream
        return stream

    def deliver(self, stream: Stream, payload: bytes, ended: bool) -> None:
        """Pass a piece of a body to the stream's receiver, now or once fewer answers wait; `ended`: it is the last."""
        if stream.declared >= 0:
            stream.declared -= len(payload)
            if stream.declared < 0 or (ended and stream.declared):
                self.break_off(stream, ErrorCode.PROTOCOL_ERROR)
                return
        stream.peer_ended = ended
        if self.inbound.is_deferred(stream.id):
            self.inbound.defer(stream.id, payload)
        else:
            self._pass_on(stream, payload)

    def _pass_on(self, stream: Stream, payload: bytes) -> None:
        receiver = stream.receiver
        if receiver is None:
            return
        try:
            receiver.received(payload, stream.peer_ended)
        except Exception as error:
            _fail(stream, receiver, error)

    def check_opened(self, stream_id: int, what: str) -> None:
        """Raise PeerError unless the client has opened this stream at some time."""
        if not stream_id & 1 or stream_id > self.shutdown.last_stream:
            raise protocol_error(f"{what} on a stream that is not open")

    # Ends

    def _answered(self, stream: Stream) -> None:
        self.conduct.sent_data()
        if not stream.peer_ended:
            self.send_reset(stream.id, ErrorCode.NO_ERROR, False)
        self._remove(stream)
        self.output.wake()
        if self.shutdown.draining:
            self.shutdown.drain()

    def _dropped(self, stream: Stream, code: ErrorCode, notify: bool) -> None:
        receiver = self._drop(stream, code)
        if notify:
            self._dropped_receivers.append(receiver)

    def _drop(self, stream: Stream, code: ErrorCode) -> Receiver | None:
        self.send_reset(stream.id, code, stream.peer_ended)
        return self._remove(stream)

    def _remove(self, stream: Stream) -> Receiver | None:
        receiver = stream.close()
        self.opened.pop(stream.id, None)
        self.output.remove(stream.id)
        if self.inbound.deferred:
            self.inbound.remove(stream.id)
        if self.shutdown.refusing and not self.opened:
            self.shutdown.close()
        return receiver

    def send_reset(self, stream_id: int, code: ErrorCode, ended: bool) -> None:
        """Send RST_STREAM. A client whose body has not `ended` may go on sending it for a while."""
        self.output.write(frames.rst_stream(stream_id, code))
        if not ended:
            self.inbound.abandoned.put(stream_id, None)

    def break_off(self, stream: Stream, code: ErrorCode) -> None:
        """Reset the stream of a client that broke a rule on it, and stop its receiver. Raises PeerError after many."""
        self.conduct.count_waste()
        _reset_receiver(self._drop(stream, code))

    def reset_by_client(self, stream_id: int) -> None:
        """Close a stream that the client has reset."""
        self.inbound.abandoned.remove(stream_id)
        stream = self.opened.get(stream_id)
        if stream is not None:
            _reset_receiver(self._remove(stream))

    def give_up_stalled(self, now: float, patience: float) -> None:
        """Give up the streams for which the client has made no room in `patience` seconds."""
        for stream_id in tuple(self.output.blocked):
            stream = self.opened.get(stream_id)
            if stream is not None and stream.is_stalled(now, patience):
                stream.give_up()

    def conclude(self) -> None:
        """Have every receiver end its stream behind the answers that it owes."""
        for stream in tuple(self.opened.values()):
            receiver = stream.receiver
            if receiver is not None:
                try:
                    receiver.conclude()
                except Exception as error:
                    _fail(stream, receiver, error)

    def lose(self) -> None:
        """Close all streams, because the client is gone."""
        self._reset_dropped()
        for stream in tuple(self.opened.values()):
            _reset_receiver(self._remove(stream))

    def _reset_dropped(self) -> None:
        while self._dropped_receivers:
            _reset_receiver(self._dropped_receivers.pop())

    # What waits

    @property
    def has_waiting(self) -> bool:
        """Whether `resume` has something to do."""
        output = self.output
        return bool(output.stalled or output.blocked or self.inbound.deferred or self._dropped_receivers)

    def resume(self) -> None:
        """Send what waits, as far as the transport takes it, and let producers and deferred requests go on."""
        self.unblock()
        self._reset_dropped()
        inbound = self.inbound
        while (stream_id := inbound.next()) != 0:
            self._pass_on(self.opened[stream_id], inbound.take(stream_id))
        output = self.output
        for stream_id in tuple(output.stalled):
            stream = self.opened.get(stream_id)
            receiver = None if stream is None else stream.receiver
            if stream is not None and receiver is not None and stream.may_go_on() and stream_id in output.stalled:
                del output.stalled[stream_id]
                try:
                    receiver.writable()
                except Exception as error:
                    _fail(stream, receiver, error)

    def unblock(self) -> None:
        """Send of what waits as much as windows and the transport let through, a frame of each stream in turn."""
        output = self.output
        progress = bool(output.blocked)
        while progress and not output.paused:
            progress = False
            for stream_id in tuple(output.blocked):
                stream = self.opened.get(stream_id)
                if stream is not None:
                    progress |= stream.send_frame()


def _fail(stream: Stream, receiver: Receiver, error: Exception) -> None:
    """End the stream of a receiver that raised, with an answer if the receiver has one."""
    _log.error("a request failed unexpectedly", exc_info=error)
    try:
        receiver.failed(error)
    except Exception:
        stream.reset(ErrorCode.INTERNAL_ERROR)


def _reset_receiver(receiver: Receiver | None) -> None:
    try:
        if receiver is not None:
            receiver.reset()
    except Exception as error:
        _log.error("a request could not be cancelled", exc_info=error)

"""One gRPC call on its stream: how its messages come in, its deadline, and the ways it ends."""

import asyncio
from collections.abc import Sequence
from typing import Final

from argosy_runtime.errors import ServingError
from argosy_runtime.http2 import Stream
from argosy_runtime.tensors import Data

from .framing import PREFIX_SIZE, MessageReader, gzipped, is_one_message, prefix
from .metadata import NO_TIMEOUT, CallHead
from .status import BY_KIND, OK, OK_GZIP, RpcError, Status, trailers

_TOO_MANY: Final = "Too many request messages for a call that takes one"
_MISSING: Final = "Missing request message"
_CUT_SHORT: Final = "The last request message was cut short"


class Call:
    """What all calls have. A subclass takes what is `received`; `cancelled` is called when nobody wants the answer."""

    __slots__ = ("_deadline", "_level", "_reader", "head", "stream")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop) -> None:
        self.stream = stream
        self.head = head
        self._reader: MessageReader | None = None
        self._level = 0
        self._deadline: asyncio.TimerHandle | None = None
        if head.timeout != NO_TIMEOUT:
            self._deadline = loop.call_later(head.timeout, self._expire)

    def received(self, data: bytes, ended: bool) -> None:
        """See `Receiver`."""
        raise NotImplementedError

    def cancelled(self) -> None:
        """The client has given up, or its time is over: stop what works for it."""

    def writable(self) -> None:
        """See `Receiver`."""

    def reset(self) -> None:
        """See `Receiver`."""
        self._forget_deadline()
        self.cancelled()

    def failed(self, error: Exception) -> None:
        """A fault of this server's; said as gRPC's Python servers say it."""
        self.fail(Status.UNKNOWN, f"Unexpected {type(error)}: {error}")
        self.cancelled()

    def compress(self, level: int) -> None:
        """Have responses compressed (zlib's levels, 0 for not at all), if the client can read them."""
        self._level = level if self.head.accepts_gzip else 0

    def respond(self, parts: Sequence[Data], size: int) -> None:
        """The one message of a call, of `size` bytes, and success."""
        self._forget_deadline()
        if self._level:
            packed = gzipped(parts, self._level)
            self.stream.respond(OK_GZIP, (packed,), len(packed))
        else:
            self.stream.respond(OK, (prefix(size), *parts), size + PREFIX_SIZE)

    def send(self, parts: Sequence[Data], size: int) -> bool:
        """One of several messages; False: wait for `writable`."""
        self._start()
        if self._level:
            packed = gzipped(parts, self._level)
            return self.stream.send((packed,), len(packed))
        return self.stream.send((prefix(size), *parts), size + PREFIX_SIZE)

    def finish(self) -> None:
        """Success, behind the messages."""
        self._forget_deadline()
        self._start()
        self.stream.end(OK.trailers)

    def _start(self) -> None:
        self.stream.start(OK_GZIP.head if self._level else OK.head)

    def fail(self, status: Status, message: str) -> None:
        """End the call with a status."""
        self._forget_deadline()
        self.stream.end(trailers(status, message, alone=not self.stream.started))

    def refuse(self, error: ServingError) -> None:
        """End the call with an error's status."""
        self.fail(BY_KIND[error.kind], error.message)

    def _expire(self) -> None:
        self._deadline = None
        self.fail(Status.DEADLINE_EXCEEDED, "Deadline Exceeded")
        self.cancelled()

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class UnaryCall(Call):
    """A call with one request message."""

    __slots__ = ()

    def message(self, data: bytes, start: int) -> None:
        """The message: what stands in `data` from `start` on."""
        raise NotImplementedError

    def received(self, data: bytes, ended: bool) -> None:
        """See `Receiver`."""
        if ended and self._reader is None and is_one_message(data):
            self.message(data, PREFIX_SIZE)
        else:
            self._collect(data, ended)

    def _collect(self, data: bytes, ended: bool) -> None:
        if self.stream.closed:
            return
        reader = self._reader
        if reader is None:
            reader = self._reader = MessageReader(self.head.encoding, self.head.limit)
        reader.add(data)
        self.stream.consumed(len(data))
        try:
            reader.check()
            if not ended:
                return
            self._reader = None  # What it holds goes with the message, not with the call.
            message = self._only(reader)
        except RpcError as error:
            self._reader = None
            self.fail(error.status, error.message)
        else:
            self.message(message, 0)

    @staticmethod
    def _only(reader: MessageReader) -> bytes:
        message = reader.next()
        if message is None:
            raise RpcError(Status.INTERNAL if not reader.is_empty else Status.UNIMPLEMENTED, _MISSING)
        if not reader.is_empty:
            raise RpcError(Status.UNIMPLEMENTED, _TOO_MANY)
        return message


class StreamingCall(Call):
    """A call with any number of request messages, which are taken one at a time while `may_take` says so.

    A client whose messages are not taken may only send as far ahead as the stream's window lets it.
    """

    __slots__ = ("_ended", "_held", "_taking")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(stream, head, loop)
        self._ended = False
        self._held = 0
        self._taking = False

    def message(self, data: bytes) -> None:
        """The next message."""
        raise NotImplementedError

    def no_more(self) -> None:
        """All messages have been taken."""
        raise NotImplementedError

    def may_take(self) -> bool:
        """Whether the next message is wanted now."""
        raise NotImplementedError

    def received(self, data: bytes, ended: bool) -> None:
        """See `Receiver`."""
        if self._reader is None:
            self._reader = MessageReader(self.head.encoding, self.head.limit)
        self._reader.add(data)
        self._held += len(data)
        self._ended = self._ended or ended
        self.take()

    def take(self) -> None:
        """Take what messages there are; called again when more may be taken."""
        if self._taking:
            return
        self._taking = True
        try:
            self._take_all()
        except RpcError as error:
            self.fail(error.status, error.message)
            self.cancelled()
        finally:
            self._taking = False

    def _take_all(self) -> None:
        reader = self._reader
        if reader is None or self.stream.closed:
            return
        while self.may_take():
            message = reader.next()
            if message is None:
                self._return_credit()
                if self._ended:
                    self._end(reader)
                return
            self.message(message)

    def _return_credit(self) -> None:
        """Nothing whole is left: what has come may come again, for the rest of a message too."""
        held, self._held = self._held, 0
        self.stream.consumed(held)

    def _end(self, reader: MessageReader) -> None:
        if not reader.is_empty:
            raise RpcError(Status.INTERNAL, _CUT_SHORT)
        self._reader = None
        self.no_more()

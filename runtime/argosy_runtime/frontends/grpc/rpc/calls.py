"""One gRPC call on its stream: how its messages come in, its deadline, and the ways it ends."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.inflating import OFFLOAD_BYTES, in_thread
from argosy_runtime.http2 import Stream
from argosy_runtime.tensors import Data

from .framing import (
    PREFIX_SIZE,
    MessageReader,
    decompress,
    decompress_at_once,
    gzipped,
    is_one_message,
    prefix,
)
from .metadata import NO_TIMEOUT, CallHead
from .packing import Packing
from .status import BY_KIND, OK, OK_GZIP, RpcError, Status, trailers

_log: Final = logging.getLogger("argosy.grpc")
_TOO_MANY: Final = "Too many request messages for a call that takes one"
_MISSING: Final = "Missing request message"
_CUT_SHORT: Final = "The last request message was cut short"


class Call:
    """What all calls have in common. A subclass implements `received`; `cancelled` is called once the client gave up.

    Large messages are (de)compressed in threads; the messages behind them wait for that.
    """

    __slots__ = ("_deadline", "_inflating", "_level", "_packing", "_reader", "head", "is_over", "stream")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop) -> None:
        self.stream = stream
        self.head = head
        self.is_over = False
        """Whether the call has its status, or has been given up."""
        self._reader: MessageReader | None = None
        self._inflating: asyncio.Future[bytes] | None = None
        self._level = 0
        self._packing: Packing | None = None
        self._deadline: asyncio.TimerHandle | None = None
        if head.timeout != NO_TIMEOUT:
            self._deadline = loop.call_later(head.timeout, self._expire)

    def received(self, data: bytes, ended: bool) -> None:
        """Take a piece of the request; `ended`: it is the last."""
        raise NotImplementedError

    def cancelled(self) -> None:
        """Stop what works for the call: its client has given up, or its time is over."""

    def writable(self) -> None:
        """Do nothing: a unary call has no more to send."""

    def conclude(self) -> None:
        """Do nothing: a unary call ends with its answer."""

    def reset(self) -> None:
        self._begin_end()
        packing, self._packing = self._packing, None
        if packing is not None:
            packing.drop()
        self.cancelled()

    def failed(self, error: Exception) -> None:
        """End the call for an error of this server, with the message of gRPC's Python servers."""
        self.fail(Status.UNKNOWN, f"Unexpected {type(error)}: {error}")
        self.cancelled()

    def compress(self, level: int) -> None:
        """Compress responses (zlib's levels, 0 for not at all), if the client can read that."""
        self._level = level if self.head.accepts_gzip else 0

    def respond(self, parts: Sequence[Data], size: int) -> None:
        """Send the one message of a call, of `size` bytes, and end the call with success."""
        if self._level and size > OFFLOAD_BYTES:
            self.send(parts, size)
            self.finish()
            return
        self._begin_end()
        if self._level:
            packed = gzipped(parts, self._level)
            self.stream.respond(OK_GZIP, (packed,), len(packed))
        else:
            self.stream.respond(OK, (prefix(size), *parts), size + PREFIX_SIZE)

    def send(self, parts: Sequence[Data], size: int) -> bool:
        """Send one of several messages; False: wait for `writable`."""
        if self.is_over:
            return True
        self._start()
        if not self._level:
            return self.stream.send((prefix(size), *parts), size + PREFIX_SIZE)
        if self._packing is None and size <= OFFLOAD_BYTES:
            packed = gzipped(parts, self._level)
            return self.stream.send((packed,), len(packed))
        if self._packing is None:
            self._packing = Packing(self.stream, self._level, self._packed)
        self._packing.send(parts, size)
        return False

    def _packed(self, error: Exception | None) -> None:
        self._packing = None
        if error is not None:
            _log.error("a message could not be compressed", exc_info=error)
            self.failed(error)
        elif not self.is_over and self.stream.may_go_on():
            self.writable()

    def finish(self) -> None:
        """End the call with success, behind the messages."""
        self._start()
        self._end_with(OK.trailers)

    def _start(self) -> None:
        self.stream.start(OK_GZIP.head if self._level else OK.head)

    def fail(self, status: Status, message: str) -> None:
        """End the call with a status."""
        self._end_with(trailers(status, message, alone=not self.stream.started))

    def _end_with(self, block: bytes) -> None:
        self._begin_end()
        if self._packing is None:
            self.stream.end(block)
        else:
            self._packing.end(block)

    def _begin_end(self) -> None:
        self.is_over = True
        inflating, self._inflating = self._inflating, None
        if inflating is not None:
            inflating.cancel()
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def refuse(self, error: ServingError) -> None:
        """End the call with an error's status."""
        self.fail(BY_KIND[error.kind], error.message)

    def _expire(self) -> None:
        self._deadline = None
        self.fail(Status.DEADLINE_EXCEEDED, "Deadline Exceeded")
        self.cancelled()

    def inflate(self, message: bytes) -> bytes | None:
        """Return a compressed message as it was; None where a thread decompresses it, and `inflated` is to come.

        Raises RpcError.
        """
        plain = decompress_at_once(message, self.head.encoding, self.head.limit)
        if plain is None:
            self._inflating = in_thread(decompress, message, self.head.encoding, self.head.limit)
            self._inflating.add_done_callback(self._take_inflated)
        return plain

    def _take_inflated(self, inflating: "asyncio.Future[bytes]") -> None:
        if inflating.cancelled():
            return
        self._inflating = None
        try:
            message = inflating.result()
            if not self.is_over:
                self.inflated(message)
        except RpcError as error:
            self.fail(error.status, error.message)
            self.cancelled()
        except Exception as fault:
            _log.error("a request failed unexpectedly", exc_info=fault)
            self.failed(fault)

    def inflated(self, message: bytes) -> None:
        """Take a message that a thread has decompressed."""
        raise NotImplementedError


class UnaryCall(Call):
    """A call with one request message."""

    __slots__ = ()

    def message(self, data: bytes, start: int) -> None:
        """Take the message: what stands in `data` from `start` on."""
        raise NotImplementedError

    def received(self, data: bytes, ended: bool) -> None:
        if ended and self._reader is None and is_one_message(data):
            self.message(data, PREFIX_SIZE)
        else:
            self._collect(data, ended)

    def _collect(self, data: bytes, ended: bool) -> None:
        if self.is_over:
            return
        reader = self._reader
        if reader is None:
            reader = self._reader = MessageReader()
        reader.add(data)
        self.stream.consumed(len(data))
        try:
            reader.check()
            if not ended:
                return
            self._reader = None  # Its bytes are freed with the message, not with the call.
            message: bytes | None = self._only(reader)
            if message is not None and reader.compressed:
                message = self.inflate(message)
        except RpcError as error:
            self._reader = None
            self.fail(error.status, error.message)
        else:
            if message is not None:
                self.message(message, 0)

    def inflated(self, message: bytes) -> None:
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

    __slots__ = ("_ended", "_taking", "_unreturned")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(stream, head, loop)
        self._ended = False
        self._unreturned = 0
        self._taking = False

    def message(self, data: bytes) -> None:
        """Take the next message."""
        raise NotImplementedError

    def no_more(self) -> None:
        """Note that all messages have been taken."""
        raise NotImplementedError

    def may_take(self) -> bool:
        """Return whether the next message may be taken now."""
        raise NotImplementedError

    def received(self, data: bytes, ended: bool) -> None:
        if self._reader is None:
            self._reader = MessageReader()
        self._reader.add(data)
        self._unreturned += len(data)
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
        if reader is None:
            return
        while not self.is_over and self._inflating is None and self.may_take():
            message = reader.next()
            if message is None:
                self._return_credit()
                if self._ended:
                    self._end(reader)
                return
            plain = self.inflate(message) if reader.compressed else message
            if plain is not None:
                self.message(plain)

    def inflated(self, message: bytes) -> None:
        self.message(message)
        self.take()

    def _return_credit(self) -> None:
        """Let the client send as many bytes as have come, because no complete message waits."""
        size, self._unreturned = self._unreturned, 0
        self.stream.consumed(size)

    def _end(self, reader: MessageReader) -> None:
        if not reader.is_empty:
            raise RpcError(Status.INTERNAL, _CUT_SHORT)
        self._reader = None
        self.no_more()

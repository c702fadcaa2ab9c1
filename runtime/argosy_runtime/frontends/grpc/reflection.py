"""grpc.reflection: the schemas of this server's services, for clients that have none, such as grpcurl."""

import asyncio

from google.protobuf.message import DecodeError

from argosy_runtime.http2 import Stream
from argosy_runtime.protocol.grpc.reflection import Reflection
from argosy_runtime.protocol.grpc.request import UNPARSABLE

from .rpc.calls import StreamingCall
from .rpc.metadata import CallHead
from .rpc.status import Status


class ReflectionCall(StreamingCall):
    """One ServerReflectionInfo: each request is answered in its turn."""

    __slots__ = ("_paused", "_reflection")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop, reflection: Reflection) -> None:
        super().__init__(stream, head, loop)
        self._reflection = reflection
        self._paused = False

    def may_take(self) -> bool:
        return not self._paused

    def message(self, data: bytes) -> None:
        try:
            answer = self._reflection.answer(data)
        except DecodeError:
            self.fail(Status.INTERNAL, UNPARSABLE)
            return
        self._paused = not self.send((answer,), len(answer))

    def writable(self) -> None:
        self._paused = False
        self.take()

    def no_more(self) -> None:
        self.finish()

    def conclude(self) -> None:
        """End the call, which its client may leave open for ever."""
        self.fail(Status.UNAVAILABLE, "the server ends")

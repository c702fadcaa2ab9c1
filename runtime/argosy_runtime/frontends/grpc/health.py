"""grpc.health.v1: serving while the server is ready, whatever the service.

Its messages are so small that they are written here: a status is one number, a list is a map of one service.
"""

import asyncio
from typing import Final

from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.http2 import Stream

from .rpc.calls import UnaryCall
from .rpc.metadata import CallHead
from .rpc.status import Status

# Seconds between two looks at readiness, which announces no changes.
_WATCH_S: Final = 0.5
_SERVING: Final = b"\x08\x01"
_NOT_SERVING: Final = b"\x08\x02"


def _status(plane: DataPlane) -> bytes:
    """Return a HealthCheckResponse."""
    return _SERVING if plane.ready() else _NOT_SERVING


class CheckCall(UnaryCall):
    """One Check."""

    __slots__ = ("_checking", "_loop", "_plane")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop, plane: DataPlane) -> None:
        super().__init__(stream, head, loop)
        self._plane = plane
        self._loop = loop
        self._checking: asyncio.Future[None] | None = None

    def message(self, data: bytes, start: int) -> None:
        check = self._plane.readiness_check()
        if check is None:
            self._respond()
        else:
            self._checking = asyncio.ensure_future(check, loop=self._loop)
            self._checking.add_done_callback(lambda _: self._respond())

    def _respond(self) -> None:
        if self.is_over:
            return
        status = self.answer(_status(self._plane))
        self.respond((status,), len(status))

    def answer(self, status: bytes) -> bytes:
        """Return the response's message."""
        return status


class ListCall(CheckCall):
    """One List: the server itself, whose service name is empty."""

    __slots__ = ()

    def answer(self, status: bytes) -> bytes:
        entry = b"\x0a\x00\x12" + bytes((len(status),)) + status
        return b"\x0a" + bytes((len(entry),)) + entry


class WatchCall(UnaryCall):
    """One Watch: the status now, and each change of it, until the client cancels."""

    __slots__ = ("_checking", "_loop", "_plane", "_sent", "_timer")

    def __init__(self, stream: Stream, head: CallHead, loop: asyncio.AbstractEventLoop, plane: DataPlane) -> None:
        super().__init__(stream, head, loop)
        self._plane = plane
        self._loop = loop
        self._sent = b""
        self._checking: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def message(self, data: bytes, start: int) -> None:
        self._look()

    def _send_status(self) -> None:
        status = _status(self._plane)
        if status != self._sent:
            self._sent = status
            self.send((status,), len(status))

    def _look(self) -> None:
        self._send_status()
        if self._checking is None or self._checking.done():
            # Models that say themselves whether they are ready do so for the next look.
            check = self._plane.readiness_check()
            self._checking = None if check is None else asyncio.ensure_future(check, loop=self._loop)
        if not self.stream.closed:
            self._timer = self._loop.call_later(_WATCH_S, self._look)

    def conclude(self) -> None:
        """Send the last status, and end the call."""
        self.cancelled()
        self._send_status()
        self.fail(Status.UNAVAILABLE, "the server ends")

    def cancelled(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

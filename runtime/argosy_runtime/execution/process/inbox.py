"""The end of the socket in a model's process, for reading: whoever waits for something reads, for all others too.

One thread reads at a time. It is the main thread while that waits for work; while it runs the model, it is any thread
that waits for the answer to a call or for a slow client. So there is no reader thread, and no hand-over from one.
"""

import os
import select
import socket
import threading
from collections.abc import Callable
from typing import Final

from .wire.arena import IncomingTensors
from .wire.frames import Frame, FrameCutter

# So long nothing has to come before the server is told of what it could use again; mostly a frame of another kind, with
# which that goes for nothing, follows sooner.
_TELL_SECONDS: Final = 0.02


class Inbox:
    """Gives every frame that comes to `sort`, on the thread that happens to read. With the server ends the process.

    `tell_gone` is called before a long wait, where something of `incoming` is gone.
    """

    def __init__(
        self,
        sock: socket.socket,
        sort: Callable[[Frame], None],
        incoming: IncomingTensors | None = None,
        tell_gone: Callable[[], None] | None = None,
    ) -> None:
        self._sock = sock
        self._sort = sort
        self._tell_gone = tell_gone
        self._incoming = incoming
        self._cutter = FrameCutter(writable=True, incoming=incoming)
        self._turn = threading.Condition(threading.Lock())
        self._reading = False
        self._waiting = 0
        self._unattended = 0
        self._attendant: threading.Thread | None = None

    def wait(self, ready: Callable[[], bool]) -> None:
        """Until `ready`, which only a frame can make true."""
        if not self._become_reader(ready):
            return
        try:
            while not ready():
                self._tell_before_long_wait()
                self._read(0)
                if self._waiting:
                    self._wake()
        finally:
            self._leave()

    def _tell_before_long_wait(self) -> None:
        if self._incoming is None or self._tell_gone is None or not self._incoming.any_gone:
            return
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        if not poll.poll(int(_TELL_SECONDS * 1000)):
            self._tell_gone()

    def _become_reader(self, ready: Callable[[], bool]) -> bool:
        """Wait until nobody else reads, or `ready` is so. Return whether this thread must read."""
        with self._turn:
            # First counted, then asked: whoever reads looks in the opposite order, so that one of them sees the other.
            self._waiting += 1
            try:
                while self._reading:
                    if ready():
                        return False
                    self._turn.wait()
            finally:
                self._waiting -= 1
            self._reading = True
        return True

    def poll(self) -> None:
        """Take in what has come already."""
        with self._turn:
            if self._reading:
                return
            self._reading = True
        try:
            while self._read(socket.MSG_DONTWAIT):
                pass
        finally:
            self._leave()

    def expect(self, more: int) -> None:
        """So many more things (fewer, where negative) will come that no thread waits for: one shall read meanwhile."""
        with self._turn:
            self._unattended += more
            if self._attendant is None:
                self._attendant = threading.Thread(target=self._attend, name="reader", daemon=True)
                self._attendant.start()
            self._turn.notify_all()

    def _attend(self) -> None:
        while True:
            with self._turn:
                while not self._unattended:
                    self._turn.wait()
            self.wait(self._attended)

    def _attended(self) -> bool:
        return not self._unattended

    def _leave(self) -> None:
        with self._turn:
            self._reading = False
            if self._waiting:
                self._turn.notify_all()

    def _wake(self) -> None:
        with self._turn:
            self._turn.notify_all()

    def _read(self, flags: int) -> bool:
        """Read once; whether anything came."""
        try:
            count = self._sock.recv_into(self._cutter.room(), 0, flags)
        except BlockingIOError:
            return False
        except OSError:
            count = 0
        if not count:
            os._exit(1)
        for frame in self._cutter.came(count):
            self._sort(frame)
        return True

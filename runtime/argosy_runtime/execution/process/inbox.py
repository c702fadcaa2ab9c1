"""The reading end of the socket in a model's process: the thread that waits for something reads for all others too.

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

# Idle time before a RELEASE frame of its own: mostly another frame, which carries the releases, follows sooner.
_RELEASE_SECONDS: Final = 0.02


class Inbox:
    """Reader of frames, which passes each to `sort` on the reading thread. The process ends with the server.

    `send_releases` is called before a long wait, where memory of `incoming` is unused.
    """

    def __init__(
        self,
        sock: socket.socket,
        sort: Callable[[Frame], None],
        incoming: IncomingTensors | None = None,
        send_releases: Callable[[], None] | None = None,
    ) -> None:
        self._sock = sock
        self._sort = sort
        self._send_releases = send_releases
        self._incoming = incoming
        self._cutter = FrameCutter(writable=True, incoming=incoming)
        self._turn = threading.Condition(threading.Lock())
        self._reading = False
        self._waiting = 0
        self._unattended = 0
        self._attendant: threading.Thread | None = None

    def wait(self, ready: Callable[[], bool]) -> None:
        """Wait until `ready`, which only a frame can make true."""
        if not self._become_reader(ready):
            return
        try:
            while not ready():
                self._release_before_long_wait()
                self._read(0)
                if self._waiting:
                    self._wake()
        finally:
            self._leave()

    def _release_before_long_wait(self) -> None:
        if self._incoming is None or self._send_releases is None or not self._incoming.any_gone:
            return
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        if not poll.poll(int(_RELEASE_SECONDS * 1000)):
            self._send_releases()

    def _become_reader(self, ready: Callable[[], bool]) -> bool:
        """Wait until no other thread reads, or `ready` is true. Return whether this thread must read."""
        with self._turn:
            # First counted, then checked: the reader does it in the opposite order, so that one of them sees the other.
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
        """Read the frames that have arrived."""
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
        """Add to the number of answers that no thread waits for (`more` may be negative): a thread reads meanwhile."""
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
        """Read once. Return whether anything came."""
        try:
            count = self._sock.recv_into(self._cutter.buffer(), 0, flags)
        except BlockingIOError:
            return False
        except OSError:
            count = 0
        if not count:
            os._exit(1)
        for frame in self._cutter.came(count):
            self._sort(frame)
        return True

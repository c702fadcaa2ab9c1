"""A small parent that keeps one child running, so that a container outlives a fault of what runs in it.

A container that ends makes its Pod unready, and with it models that are served well. The parent imports next to
nothing, passes SIGTERM and SIGINT on, and starts the child again after a pause that grows. As a container's first
process it also reaps processes whose parents are gone.
"""

import logging
import os
import select
import signal
import time
from collections.abc import Sequence

from argosy_common.backoff import backoff_s

LOG = logging.getLogger(__name__)
BACKOFF_FIRST_S, BACKOFF_MOST_S = 0.5, 30.0
SETTLED_S = 60.0
"""A child that has run this long starts afresh with its backoff when it ends."""


def pause_s(crashes: int, ran_s: float) -> float:
    """Return how long to wait after the last of `crashes` in a row, before which the child had run for `ran_s`."""
    return 0.0 if ran_s >= SETTLED_S else backoff_s(crashes, BACKOFF_FIRST_S, BACKOFF_MOST_S)


class Supervisor:
    """Keeps `command` running. Only the main thread may run it, once."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._child = 0
        self._started = self._start_at = 0.0
        self._crashes = 0
        self._stopping = False

    def run(self) -> int:
        """Run until SIGTERM or SIGINT has ended the child; a second one kills it. Return the exit code."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_inheritable(writer, False)
        for handled in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(handled, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        while not (self._stopping and not self._child):
            self._start_when_due(time.monotonic())
            for received in self._signals(reader):
                self._handle(received)
            self._reap()
        return 0

    def _start_when_due(self, now: float) -> None:
        if self._child or self._stopping or now < self._start_at:
            return
        try:
            self._child = os.posix_spawn(self._command[0], self._command, os.environ)
        except OSError as error:
            LOG.error("the agent cannot be started: %s", error)
            self._ended(0.0)
        else:
            self._started = now

    def _signals(self, reader: int) -> bytes:
        """Return the numbers of received signals; wait for one, or until the child is to be started."""
        wait = None if self._child else max(self._start_at - time.monotonic(), 0.0)
        ready, _, _ = select.select([reader], [], [], wait)
        return os.read(reader, 64) if ready else b""

    def _handle(self, number: int) -> None:
        if number not in (signal.SIGTERM, signal.SIGINT):
            return
        if self._child:
            LOG.info("%s: the agent is %s", signal.Signals(number).name, "killed" if self._stopping else "asked to end")
            os.kill(self._child, signal.SIGKILL if self._stopping else signal.SIGTERM)
        self._stopping = True

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._child:
                self._child = 0
                if not self._stopping:
                    LOG.error("the agent %s", _how(os.waitstatus_to_exitcode(status)))
                    self._ended(time.monotonic() - self._started)

    def _ended(self, ran_s: float) -> None:
        self._crashes = self._crashes + 1 if ran_s < SETTLED_S else 0
        wait = pause_s(self._crashes, ran_s)
        self._start_at = time.monotonic() + wait
        LOG.error("it starts again in %.1f s; what is loaded goes on being served", wait)


def _how(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

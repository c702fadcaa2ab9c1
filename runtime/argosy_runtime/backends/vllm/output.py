"""Standard error of an engine's processes: it goes where it went before, and its last lines are kept."""

import os
import select
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from .causes import cause_of

_STDERR: Final = 2
_READ_BYTES: Final = 1 << 16
_MOST_LINES: Final = 1000
"""Lines that are kept: tracebacks of the processes of eight GPUs, twice each."""
_LONGEST_LINE: Final = 2000


class ProcessOutput:
    """What the processes write that are started during `capture`, for as long as they run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._unfinished = b""
        self._pipe = self._target = -1

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Have processes that are started now write to this value, on their way to this process's standard error."""
        sys.stderr.flush()
        try:
            self._target = os.dup(_STDERR)
        except OSError:  # this process has none
            yield
            return
        self._pipe, writer = os.pipe()
        os.set_blocking(self._pipe, False)
        os.dup2(writer, _STDERR)
        os.close(writer)
        threading.Thread(target=self._follow, name="engine-output", daemon=True).start()
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(self._target, _STDERR)

    def cause(self) -> str:
        """Return why the first of the processes ended, "" where they do not say."""
        self.pass_on()
        with self._lock:
            return cause_of([*self._lines, _text(self._unfinished)])

    def pass_on(self) -> bool:
        """Pass on what the processes have written. Return whether more can come."""
        with self._lock:
            if self._pipe < 0:
                return False
            while True:
                try:
                    data = os.read(self._pipe, _READ_BYTES)
                except BlockingIOError:
                    return True
                if not data:
                    return False
                self._keep(data)

    def _follow(self) -> None:
        waiting = select.poll()
        waiting.register(self._pipe, select.POLLIN)
        while self.pass_on():
            waiting.poll()
        with self._lock:
            os.close(self._pipe)
            os.close(self._target)
            self._pipe = -1

    def _keep(self, data: bytes) -> None:
        with suppress(OSError):  # nothing reads this process's standard error any more; the lines are kept all the same
            unsent = memoryview(data)
            while unsent:
                unsent = unsent[os.write(self._target, unsent) :]
        *lines, last = (self._unfinished + data).split(b"\n")
        self._lines.extend(map(_text, lines))
        self._unfinished = last[:_LONGEST_LINE]


def _text(line: bytes) -> str:
    return line[:_LONGEST_LINE].decode(errors="replace")

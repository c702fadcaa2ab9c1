"""The process groups of this server's models: each model's process leads one, in a session of its own.

A model's children belong to its group, unless they leave it on purpose. The group is killed when the model's process is
gone, and by the guard when this process is.
"""

import asyncio
import atexit
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from .guard import LEADER, send

_GUARD: Final = Path(__file__).with_name("guard.py")
_ENDING_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.01


class Groups:
    """The process groups, and the guard that watches over them. Methods may be called on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leaders: set[int] = set()
        self._guard: subprocess.Popen[bytes] | None = None

    def add(self, leader: int) -> None:
        """Add the group of a model's process that has started. Raises OSError where no guard can be started."""
        with self._lock:
            self._leaders.add(leader)
            self._notify_guard(leader)

    async def end(self, leader: int) -> None:
        """End the rest of a group whose leader has ended.

        It gets SIGTERM before it is killed: a cleaner such as Python's tracker of shared memory takes a moment,
        and ends by itself.
        """
        send(leader, signal.SIGTERM)
        for _ in range(round(_ENDING_SECONDS / _LOOK_SECONDS)):
            if _is_gone(leader):
                break
            await asyncio.sleep(_LOOK_SECONDS)
        self.kill(leader)

    def kill(self, leader: int) -> None:
        """Kill the rest of a group."""
        with self._lock:
            if leader not in self._leaders:
                return
            kill(leader)
            self._leaders.discard(leader)
            with suppress(OSError):
                self._notify_guard(-leader)
        if not _is_gone(leader):
            threading.Thread(target=_bury, args=(leader,), name=f"group {leader}", daemon=True).start()

    def close(self) -> None:
        """End the guard, and with it all remaining groups."""
        with self._lock:
            guard, self._guard = self._guard, None
        if guard is not None:
            _end(guard)

    def _notify_guard(self, number: int) -> None:
        if self._guard is not None:
            with suppress(BrokenPipeError):
                _write(self._guard, number)
                return
            _end(self._guard)
        self._guard = _started()
        for leader in self._leaders:
            _write(self._guard, leader)


def kill(leader: int) -> None:
    """Kill a group, if it exists."""
    send(leader, signal.SIGKILL)


def _is_gone(leader: int) -> bool:
    """Return whether nothing is left of a group whose leader has ended.

    Its processes that this process inherits, as a container's first process inherits all orphans, are waited for:
    they would stay as zombies.
    """
    with suppress(ChildProcessError):
        while os.waitpid(-leader, os.WNOHANG) != (0, 0):
            pass
    return not send(leader, 0)


def _bury(leader: int) -> None:
    """Wait for the processes of a killed group that this process inherits."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-leader, 0)


def _started() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_GUARD)],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _write(guard: "subprocess.Popen[bytes]", number: int) -> None:
    assert guard.stdin is not None
    guard.stdin.write(LEADER.pack(number))


def _end(guard: "subprocess.Popen[bytes]") -> None:
    assert guard.stdin is not None
    guard.stdin.close()
    guard.wait()


GROUPS: Final = Groups()
"""The groups of this process."""

atexit.register(GROUPS.close)

"""A process of this machine that leads a session of its own.

It is started, taken over where a killed `argosy up` left it, and stopped with all it started.
A terminal's Ctrl-C reaches `argosy up` alone, which then stops its processes in order. They are not tied to its life:
after a kill -9 they go on, and the next `argosy up` finds them by process id, start time and command.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import psutil

from argosy_agent.jsonfiles import read_json, write_json

POLL_S = 0.05
KILLED_S = 30.0
"""How long a killed process may take to be gone."""
START_TOLERANCE_S = 2.0
"""A start time is computed from the boot time, which moves when the clock is set."""


class Startable(Protocol):
    """What a process is started with."""

    def arguments(self) -> list[str]:
        """Return the command line."""

    def variables(self) -> Mapping[str, str]:
        """Return what is set in its environment beyond this process's own."""

    def record(self) -> Mapping[str, Any]:
        """Return what must be the same for a running process to be taken over."""


class LocalProcess:
    """A running process. `adopted` tells whether an earlier `argosy up` started it."""

    def __init__(self, process: psutil.Process, folder: Path, adopted: bool) -> None:
        self._process = process
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None
        self.adopted = adopted

    @property
    def pid(self) -> int:
        """Its process id, which is also its session's."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return _alive(self._process)

    @classmethod
    def start(cls, command: Startable, folder: Path, log_name: str) -> "LocalProcess":
        """Start it in `folder`, its output appended to the file `log_name` there."""
        with (folder / log_name).open("ab") as log:
            child = subprocess.Popen(
                command.arguments(),
                env={**os.environ, **command.variables()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process = psutil.Process(child.pid)
        record = {"pid": child.pid, "started": process.create_time(), **command.record()}
        write_json(folder / "process.json", record)
        started = cls(process, folder, adopted=False)
        started._child = child
        return started

    @classmethod
    def left(cls, folder: Path) -> "LocalProcess | None":
        """Return the process that runs from this folder, if one does."""
        record = read_json(folder / "process.json")
        if record is None:
            return None
        try:
            process = psutil.Process(int(record["pid"]))
            same = abs(process.create_time() - float(record["started"])) < START_TOLERANCE_S
        except (psutil.Error, KeyError, ValueError, TypeError):
            return None
        return cls(process, folder, adopted=True) if same and _alive(process) else None

    def matches(self, command: Startable) -> bool:
        """Return whether it was started with exactly `command`."""
        record = read_json(self._folder / "process.json") or {}
        return all(record.get(key) == value for key, value in command.record().items())

    def terminate(self) -> None:
        """Ask it to end."""
        if self.alive:
            self._process.terminate()

    def kill(self) -> None:
        """End it and all of its session at once."""
        if self.alive:
            _kill_group(self.pid)

    def end(self) -> None:
        """Kill what is left of its session, and forget it. Blocks until its own process is gone."""
        _kill_group(self.pid)
        if self._child is not None:
            self._child.wait()
        else:
            psutil.wait_procs([self._process], timeout=KILLED_S)
        (self._folder / "process.json").unlink(missing_ok=True)

    def wait(self, timeout_s: float) -> bool:
        """Block until it has ended, at most `timeout_s`. Whether it has.

        A child is not reaped here: its process id stays its own until `end` has killed its session.
        """
        deadline = time.monotonic() + timeout_s
        while self.alive and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return not self.alive

    @property
    def exit_code(self) -> int | None:
        """After `end`: its exit code, the negative number of the signal that ended it, or None where nobody knows."""
        return self._child.returncode if self._child is not None else None

    def how_it_ended(self) -> str:
        """Return a few words, after `end`: its exit code or signal, where they are known."""
        code = self.exit_code
        if code is None:
            return "ended"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


def stop(process: LocalProcess, timeout_s: float) -> None:
    """Ask a process to end, then end it and all of its session. Blocks for `timeout_s` and a moment at most."""
    process.terminate()
    process.wait(timeout_s)
    process.end()


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _kill_group(leader: int) -> None:
    # PermissionError is what macOS says of a group in which only zombies are left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)

"""A process of this machine that leads a session of its own.

It is started, adopted where a killed `argosy up` left it, and stopped together with its children. Ctrl-C in a terminal
reaches `argosy up` alone, which then stops its processes in order. Processes outlive a killed `argosy up`; the next one
finds them by process id, start time and command.
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
"""Seconds that a killed process may take to end."""
START_TOLERANCE_S = 2.0
"""psutil computes a start time from the boot time, which moves when the clock is set."""


class Startable(Protocol):
    """The command of a process."""

    def arguments(self) -> list[str]:
        """Return the command line."""

    def variables(self) -> Mapping[str, str]:
        """Return the variables to add to this process's environment."""

    def record(self) -> Mapping[str, Any]:
        """Return what must be equal for a running process to be adopted."""


class LocalProcess:
    """A running process. `adopted` says whether an earlier `argosy up` started it."""

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
        """Start a process with its record in `folder`; append its output to the file `log_name` there."""
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
        """Return the running process whose record is in this folder, if there is one."""
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
        """Send it SIGTERM."""
        if self.alive:
            self._process.terminate()

    def kill(self) -> None:
        """Kill it and its session."""
        if self.alive:
            _kill_group(self.pid)

    def end(self) -> None:
        """Kill the rest of its session and remove its record. Blocks until its own process has ended."""
        _kill_group(self.pid)
        if self._child is not None:
            self._child.wait()
        else:
            psutil.wait_procs([self._process], timeout=KILLED_S)
        (self._folder / "process.json").unlink(missing_ok=True)

    def wait(self, timeout_s: float) -> bool:
        """Block until it has ended, at most `timeout_s`. Return whether it has.

        A child is not reaped here: `end` kills its session first, whose id must not be reused.
        """
        deadline = time.monotonic() + timeout_s
        while self.alive and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return not self.alive

    @property
    def exit_code(self) -> int | None:
        """After `end`: its exit code, the negative number of the signal that ended it, or None if unknown."""
        return self._child.returncode if self._child is not None else None

    def how_it_ended(self) -> str:
        """Return how it ended, for messages: its exit code or signal, if known. Call it after `end`."""
        code = self.exit_code
        if code is None:
            return "ended"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


def stop(process: LocalProcess, timeout_s: float) -> None:
    """Terminate a process, and kill it and its session after `timeout_s`. Blocks."""
    process.terminate()
    process.wait(timeout_s)
    process.end()


def last_line(log: Path) -> str:
    """Return the last line of a log that is not empty, for messages; "nothing" if there is none."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return "nothing"
    return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _kill_group(leader: int) -> None:
    # macOS raises PermissionError for a group in which only zombies are left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)

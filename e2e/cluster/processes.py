"""Processes that outlive their starter, each known by its pid and its start time.

A pid alone may meanwhile belong to another program; with the start time (kernel clock ticks after boot) it cannot.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.waiting import poll


@dataclass(frozen=True, slots=True)
class Process:
    """A process as its record has it. `start_ticks` is field 22 of /proc/PID/stat."""

    name: str
    pid: int
    start_ticks: int
    log: str

    def alive(self) -> bool:
        """Return whether this very process runs. One that this Python started and that ended is reaped on the way."""
        with suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        stat = _stat(self.pid)
        return stat is not None and stat == ("running", self.start_ticks)


def parse_stat(text: str) -> tuple[str, int]:
    """Return state ("running" or "dead") and start time of a /proc/PID/stat line; its second field may hold any
    character.
    """
    fields = text[text.rindex(")") + 2 :].split()
    return ("dead" if fields[0] in "ZX" else "running", int(fields[19]))


def _stat(pid: int) -> tuple[str, int] | None:
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


class Processes:
    """The processes of one cluster: records in `folder`/pids, logs in `folder`/logs."""

    def __init__(self, folder: Path) -> None:
        self._records = folder / "pids"
        self._logs = folder / "logs"

    def start(self, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Process:
        """Start `command` in a session of its own, its output added to logs/NAME.log; one that runs is left alone."""
        running = self.get(name)
        if running is not None and running.alive():
            return running
        self._records.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"{name}.log"
        with log.open("ab") as output:
            child = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=None if env is None else {**os.environ, **env},
            )
        # The cluster outlives this object; `Process` watches it from here on.
        child.returncode = 0
        stat = _stat(child.pid)
        process = Process(name, child.pid, stat[1] if stat else -1, str(log))
        temporary = self._records / f".{name}.new"
        temporary.write_text(json.dumps(asdict(process)))
        temporary.rename(self._records / f"{name}.json")
        return process

    def get(self, name: str) -> Process | None:
        """Return the record of `name`, alive or not."""
        try:
            return Process(**json.loads((self._records / f"{name}.json").read_text()))
        except FileNotFoundError:
            return None

    def all(self) -> list[Process]:
        """Return every recorded process, the oldest record first."""
        records = sorted(self._records.glob("*.json"), key=lambda record: record.stat().st_mtime_ns)
        return [process for record in records if (process := self.get(record.stem)) is not None]

    def must_live(self, name: str) -> None:
        """Raise ClusterError with the end of its log when `name` is not running."""
        process = self.get(name)
        if process is None:
            raise ClusterError(f"{name} was never started")
        if not process.alive():
            raise ClusterError(f"{name} ended; the end of {process.log}:\n{tail(Path(process.log))}")

    def stop(self, *names: str, grace_s: float = 10.0) -> None:
        """End the named processes (all when none is named), the newest first: SIGTERM, after `grace_s` SIGKILL."""
        chosen = [process for process in reversed(self.all()) if not names or process.name in names]
        for process in chosen:
            self._signal(process, signal.SIGTERM)
        if not poll(lambda: not any(process.alive() for process in chosen), grace_s, every_s=0.05):
            for process in chosen:
                self._signal(process, signal.SIGKILL)
            poll(lambda: not any(process.alive() for process in chosen), grace_s, every_s=0.05)
        for process in chosen:
            if process.alive():
                raise ClusterError(f"{process.name} (pid {process.pid}) does not end")
            (self._records / f"{process.name}.json").unlink(missing_ok=True)

    @contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Stop a process while the block runs, as on a machine that has no time for it."""
        self.must_live(name)
        process = self.get(name)
        assert process is not None
        self._signal(process, signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(process, signal.SIGCONT)

    @staticmethod
    def _signal(process: Process, number: signal.Signals) -> None:
        if process.alive():
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)


def tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of a log."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"

"""One server process: start it, take over one that a killed `argosy up` left, stop it with all it started.

A server leads a session of its own, so that a terminal's Ctrl-C reaches `argosy up` alone, which then stops
it in order. It is not tied to the life of `argosy up`: after a kill -9 it goes on serving, and the next one
takes it over by its process id, its start time and its command.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from argosy_agent.jsonfiles import read_json, write_json

from .ports import Ports

PROGRAM = (sys.executable, "-m", "argosy_runtime.server")
"""The bundled runtime."""
EXIT_TIMEOUT_S = 30
"""How long a server may drain its requests before it is killed: tritonserver's own default."""
POLL_S = 0.05
START_TOLERANCE_S = 2.0
"""A start time is computed from the boot time, which moves when the clock is set."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a pool sets for its servers: variables, and flags beyond those that every server has."""

    environment: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """What a server is started with. `devices` becomes CUDA_VISIBLE_DEVICES; empty hides every GPU."""

    repository: Path
    host: str
    ports: Ports
    devices: tuple[str, ...] = ()
    settings: ServerSettings = ServerSettings()
    program: tuple[str, ...] = PROGRAM

    def arguments(self) -> list[str]:
        """The command line, with tritonserver's flags."""
        return [
            *self.program,
            f"--model-repository={self.repository}",
            "--model-control-mode=explicit",
            f"--http-address={self.host}",
            f"--grpc-address={self.host}",
            f"--metrics-address={self.host}",
            f"--http-port={self.ports.http}",
            f"--grpc-port={self.ports.grpc}",
            f"--metrics-port={self.ports.metrics}",
            f"--exit-timeout-secs={EXIT_TIMEOUT_S}",
            *self.settings.flags,
        ]

    def variables(self) -> dict[str, str]:
        """What is set in its environment beyond this process's own."""
        return {**self.settings.environment, "CUDA_VISIBLE_DEVICES": ",".join(self.devices)}

    def record(self) -> dict[str, object]:
        """What must be the same for a running server to be taken over."""
        return {"arguments": self.arguments(), "variables": self.variables()}


class ServerProcess:
    """A running server. `adopted` tells whether an earlier `argosy up` started it."""

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
    def start(cls, command: Command, folder: Path) -> "ServerProcess":
        """Start a server in `folder`, its output appended to server.log there."""
        with (folder / "server.log").open("ab") as log:
            child = subprocess.Popen(
                command.arguments(),
                env={**os.environ, **command.variables()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process = psutil.Process(child.pid)
        record = {
            "pid": child.pid,
            "started": process.create_time(),
            "ports": asdict(command.ports),
            **command.record(),
        }
        write_json(folder / "process.json", record)
        server = cls(process, folder, adopted=False)
        server._child = child
        return server

    @classmethod
    def left(cls, folder: Path) -> "ServerProcess | None":
        """The server that runs from this folder, if one does."""
        record = read_json(folder / "process.json")
        if record is None:
            return None
        try:
            process = psutil.Process(int(record["pid"]))
            same = abs(process.create_time() - float(record["started"])) < START_TOLERANCE_S
        except (psutil.Error, KeyError, ValueError, TypeError):
            return None
        return cls(process, folder, adopted=True) if same and _alive(process) else None

    @staticmethod
    def left_ports(folder: Path) -> Ports | None:
        """The ports that the last server here had."""
        record = read_json(folder / "process.json") or {}
        ports = record.get("ports", {})
        return Ports(**ports) if ports else None

    def matches(self, command: Command) -> bool:
        """Whether it was started with exactly `command`."""
        record = read_json(self._folder / "process.json") or {}
        return all(record.get(key) == value for key, value in command.record().items())

    def terminate(self) -> None:
        """Ask it to drain and end. It may take EXIT_TIMEOUT_S."""
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
            psutil.wait_procs([self._process], timeout=EXIT_TIMEOUT_S)
        (self._folder / "process.json").unlink(missing_ok=True)

    def wait(self, timeout_s: float) -> bool:
        """Block until it has ended, at most `timeout_s`. Whether it has.

        A child is not reaped here: its process id stays its own until `end` has killed its session.
        """
        deadline = time.monotonic() + timeout_s
        while self.alive and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return not self.alive

    def how_it_ended(self) -> str:
        """A few words, after `end`: its exit code or signal, where they are known."""
        code = self._child.returncode if self._child is not None else None
        if code is None:
            return "ended"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


def stop(server: ServerProcess, timeout_s: float = EXIT_TIMEOUT_S) -> None:
    """Drain and end a server and all of its session. Blocks for `timeout_s` and a moment at most."""
    server.terminate()
    server.wait(timeout_s)
    server.end()


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _kill_group(leader: int) -> None:
    # PermissionError is what macOS says of a group in which only zombies are left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)

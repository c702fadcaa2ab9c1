"""`argosy serve` as a user starts it: with a mark in its environment, so that what it leaves behind is seen."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

PATIENCE_S = 60.0
_STARTED = re.compile(r"Started (HTTPService|GRPCInferenceService|Metrics Service) at 127\.0\.0\.1:(\d+)")
LOOPBACK = ("--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1")
_WORKER = "argosy_runtime.execution.process.worker"
_MARK = "ARGOSY_TEST_SERVER"
ANY_PORT = {"--http-port": 0, "--grpc-port": 0, "--metrics-port": 0}


@dataclass
class Serving:
    """A started `argosy serve`."""

    process: subprocess.Popen[bytes] = field(repr=False)
    log: Path
    mark: str
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    def wait_for_ports(self) -> None:
        """Wait until it prints where it listens."""
        wait_until(lambda: len(_STARTED.findall(self.text)) == 3 or self.process.poll() is not None, self.log)
        self.ports = {name.split()[0].removesuffix("Service"): int(port) for name, port in _STARTED.findall(self.text)}

    def wait_until_ready(self) -> "Serving":
        """Wait until it answers that it is ready; fails where it ends before."""
        self.wait_for_ports()
        wait_until(lambda: self.process.poll() is not None or self.status("/v2/health/ready") == 200, self.log)
        assert self.process.poll() is None, self.text
        return self

    def ask(self, path: str, body: Any = None, port: str = "HTTP") -> tuple[int, bytes]:
        """Return status and body; `body` is POSTed, as JSON where it is not bytes. Raises OSError where no server
        answers.
        """
        data = json.dumps(body).encode() if isinstance(body, dict | list) else body
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[port]}{path}", data)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def status(self, path: str) -> int:
        """Return the status alone; 0 where no server answers."""
        try:
            return self.ask(path)[0]
        except OSError:
            return 0

    def infer(self, model: str, value: int) -> tuple[int, Any]:
        """Return status and answer of a model that takes X INT32 [1]: its Y, or the error."""
        tensor = {"name": "X", "datatype": "INT32", "shape": [1], "data": [value]}
        status, body = self.ask(f"/v2/models/{model}/infer", {"inputs": [tensor]})
        answer = json.loads(body)
        return status, answer["outputs"][0]["data"][0] if status == 200 else answer["error"]

    def metrics(self) -> str:
        """Return the metrics endpoint's text."""
        status, body = self.ask("/metrics", port="Metrics")
        assert status == 200
        return body.decode()

    def workers(self) -> list[psutil.Process]:
        """Return the models' processes."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in below if _WORKER in process.cmdline()]

    def left(self) -> list[str]:
        """Return what still runs of it: the server, and all that it or a model of it has started."""
        return [_describe(process) for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            # A process keeps the environment that it was started with, in whatever session it is.
            return process.environ().get(_MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def end(self) -> None:
        """Clean up after a test: kill whatever is left of it."""
        self.process.kill()
        self.process.wait()
        for process in psutil.process_iter():
            if self._is_ours(process):
                process.kill()


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())}"
    except psutil.NoSuchProcess:
        return f"{process.pid} just ended"


def start(repository: Path, log: Path, *flags: str, **ports: int) -> Serving:
    """Start it on loopback; every port is any free one, unless `http_port`, `grpc_port` or `metrics_port` says."""
    by_flag = {f"--{name.replace('_', '-')}": port for name, port in ports.items()}
    chosen = [f"{flag}={port}" for flag, port in {**ANY_PORT, **by_flag}.items()]
    command = [sys.executable, "-m", "argosy.cli", "serve", f"--model-repository={repository}"]
    with log.open("wb") as sink:
        mark = uuid4().hex
        process = subprocess.Popen(
            [*command, *LOOPBACK, *chosen, *flags],
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, _MARK: mark},
            start_new_session=True,
        )
    return Serving(process, log, mark)


def wait_until(condition: Callable[[], bool], log: Path | None = None) -> None:
    """Poll until `condition` holds; a failure shows the log."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:.0f} s\n{log.read_text() if log else ''}"
        time.sleep(0.02)

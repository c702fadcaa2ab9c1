"""A reader who types what a document says, in a folder with a copy of the examples."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
from tests.docs.blocks import ROOT, Block

PORTS = (8000, 8001, 8002)
READY_S = 180.0
SCRIPT_S = 120.0


class Reader:
    """Runs blocks one after the other. `folder`, empty at first, is where it types them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__", ".argosy"))
        (folder / ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "CURL_HOME": str(folder), "OMP_NUM_THREADS": "1"}
        self._server: subprocess.Popen[bytes] | None = None

    def run(self, block: Block) -> str:
        """Run a block and return what it printed; a server is left running. Fails where it does not succeed."""
        if block.goes_on:
            self.leave()
            self._start(block.commands[0])
            return ""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SCRIPT_S,
            check=False,
        )
        assert done.returncode == 0, f"line {block.line} ended with {done.returncode}:\n{block.text}\n{done.stdout}"
        return done.stdout

    def _start(self, command: str) -> None:
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        ready = self._all_ready if command.startswith("argosy up") else _server_ready
        deadline = time.monotonic() + READY_S
        while not ready():
            if (code := self._server.poll()) is not None:
                self._server = None
                raise AssertionError(f"{command} ended with {code}:\n{self._output()}")
            assert time.monotonic() < deadline, f"{command} is not ready after {READY_S:.0f} s:\n{self._output()}"
            time.sleep(0.2)

    @property
    def _log(self) -> Path:
        return self._folder / "server.log"

    def _output(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def _all_ready(self) -> bool:
        """Return whether every resource is Ready, by the status file: `argosy get` would take a core from servers."""
        try:
            status = json.loads((self._folder / ".argosy/status.json").read_text())
        except FileNotFoundError:
            return False
        if self._server is None or status["pid"] != self._server.pid:
            return False
        return bool(status["resources"]) and all(
            _conditions(resource).get("Ready") == "True" for resource in status["resources"]
        )

    def leave(self) -> None:
        """Send Ctrl-C to what runs. Fails where it does not end well, or leaves a process."""
        if self._server is None:
            return
        server, self._server = self._server, None
        below = psutil.Process(server.pid).children(recursive=True) if server.poll() is None else []
        server.send_signal(signal.SIGINT)
        try:
            code = server.wait(60)
        finally:
            server.kill()
            _, left = psutil.wait_procs(below, timeout=5)
            for process in left:
                process.kill()
        assert code == 0, f"it ended with {code}:\n{self._output()}"
        assert left == []


def _conditions(item: dict[str, object]) -> dict[str, str]:
    status = item.get("status")
    conditions = status.get("conditions", []) if isinstance(status, dict) else []
    return {condition["type"]: condition["status"] for condition in conditions}


def _server_ready() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORTS[0]}/v2/health/ready", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False

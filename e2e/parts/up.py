"""A started `argosy up`, as a user starts it."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from e2e.cluster.state import free_ports

REQUEST = json.dumps({"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [0]}]}).encode()


class Up:
    """A started `argosy up` on the manifests of a folder, with its state next to them, and further flags."""

    program: tuple[str, ...] = (sys.executable, "-m", "argosy.cli")

    def __init__(self, folder: Path, *flags: str) -> None:
        self.state, self.log, self.manifests = folder / "state", folder / "log", folder / "manifests"
        self.http, self.grpc, self.metrics = free_ports(3)
        self._flags = flags
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Up":
        """Start it, or start it again."""
        flags = (
            f"--http-port={self.http}",
            f"--grpc-port={self.grpc}",
            f"--metrics-port={self.metrics}",
            f"--state={self.state}",
            *self._flags,
        )
        command = (*self.program, "up", str(self.manifests), *flags)
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=dict(os.environ))
        return self

    def kill(self) -> None:
        """Kill it alone; its servers go on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop it and its servers."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()

    def declare(self, text: str, file: str = "all.yaml") -> None:
        """Replace a manifest at once, as a checkout of Git does."""
        manifest = self.manifests / file
        manifest.with_suffix(".tmp").write_text(text)
        manifest.with_suffix(".tmp").replace(manifest)

    def status(self, name: str) -> dict[str, Any]:
        """Return the status of a model; empty before there is one."""
        try:
            resources = json.loads((self.state / "status.json").read_text())["resources"]
        except (OSError, ValueError):
            return {}
        named = (resource for resource in resources if resource["metadata"]["name"] == name)
        status: dict[str, Any] = next((resource.get("status", {}) for resource in named), {})
        return status

    def until(self, what: str, condition: Callable[[], bool], patience_s: float = 180.0) -> None:
        """Wait for a condition; fails with the log."""
        end = time.monotonic() + patience_s
        while not condition():
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, f"{what}: not within {patience_s:.0f} s\n{self.log.read_text()}"
            time.sleep(0.1)

    def ask(self, name: str) -> tuple[int, Any]:
        """Return the HTTP status and the answer of a model that takes X INT32 [1]."""
        url = f"http://127.0.0.1:{self.http}/v2/models/{name}/infer"
        try:
            with urllib.request.urlopen(url, REQUEST, timeout=30) as answer:
                return int(answer.status), json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

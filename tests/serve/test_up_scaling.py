"""`argosy up` under a real load: more instances of a model that requests wait for, and none of them lost meanwhile."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.cluster.state import free_ports

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[2]
MANIFESTS = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: laptop}
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: work}
spec:
  poolRef: {name: laptop}
  modelFormat: {name: python}
  version: 1
  storageUri: file:work
  inputs: [{name: X, dataType: TYPE_INT32, dims: [1]}]
  outputs: [{name: VERSION, dataType: TYPE_INT32, dims: [1]}]
  slo: {latency: {p99: 300ms}}
  scaling: {maxInstances: 4}
  config: {parameters: {WORK_S: {string_value: "0.1"}}}
"""
REQUEST = json.dumps({"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [0]}]}).encode()
WORKERS = 8
"""Each asks again once it was answered: with one instance they wait eight times as long as a request takes."""


class Up:
    """A started `argosy up`."""

    def __init__(self, folder: Path) -> None:
        self.state, self.log = folder / "state", folder / "log"
        self.http, grpc, metrics = free_ports(3)
        (folder / "manifests/work").mkdir(parents=True)
        (folder / "manifests/all.yaml").write_text(MANIFESTS)
        model = ROOT / "e2e/models/version/model.py"
        (folder / "manifests/work/model.py").write_text(model.read_text())
        flags = (
            f"--http-port={self.http}",
            f"--grpc-port={grpc}",
            f"--metrics-port={metrics}",
            f"--state={self.state}",
        )
        command = (sys.executable, "-m", "argosy.cli", "up", str(folder / "manifests"), *flags)
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=dict(os.environ))

    def status(self) -> dict[str, Any]:
        """Return the model's status; empty before there is one."""
        try:
            resources = json.loads((self.state / "status.json").read_text())["resources"]
        except (OSError, ValueError):
            return {}
        status: dict[str, Any] = next(
            (resource.get("status", {}) for resource in resources if resource["kind"] != "ServingPool"), {}
        )
        return status

    def scaling(self) -> dict[str, Any]:
        scaling: dict[str, Any] = self.status().get("scaling", {})
        return scaling

    def until(self, what: str, condition: Callable[[], bool], patience_s: float = 60.0) -> None:
        end = time.monotonic() + patience_s
        while not condition():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, (
                f"{what}: not within {patience_s:.0f} s; {self.status()}\n{self.log.read_text()}"
            )
            time.sleep(0.2)

    def ask(self) -> int:
        url = f"http://127.0.0.1:{self.http}/v2/models/work/infer"
        with urllib.request.urlopen(url, REQUEST, timeout=30) as answer:
            return int(answer.status)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    started = Up(tmp_path)
    try:
        started.until("Ready", lambda: "Ready=True (Serving)" in started.log.read_text())
        yield started
    finally:
        started.process.terminate()
        try:
            started.process.wait(60)
        finally:
            started.process.kill()


def test_instances_follow_the_load_and_the_status_says_why(up: Up) -> None:
    assert up.scaling()["instances"] == 1
    stop, answers, errors = threading.Event(), list[int](), list[str]()

    def work() -> None:
        while not stop.is_set():
            try:
                answers.append(up.ask())
            except OSError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    try:
        up.until("more instances", lambda: up.scaling().get("instances", 1) > 1)
        up.until("the sentence in the log", lambda: "InferenceModel work: Goes from 1 to" in up.log.read_text())
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert set(answers) == {200}
    newest = up.scaling()["history"][-1]
    assert newest["formerInstances"] == 1
    assert "p99 300 ms" in newest["message"]
    ready = [line for line in up.log.read_text().splitlines() if line.startswith("InferenceModel work v1: Ready=False")]
    assert not any("former one goes on serving" in line for line in ready)  # it was Ready all the while

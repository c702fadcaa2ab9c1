"""`argosy up` as a process, on a folder of manifests: what its tests share."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from e2e.cluster import state

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30.0

REAL = "import typer; from argosy.cli.local.up import up; typer.run(up)"
"""`argosy up` as it is installed."""

POOL = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: laptop}
spec: {}
"""

MODEL = """
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: NAME}
spec:
  poolRef: {name: laptop}
  modelFormat: {name: python}
  version: VERSION
  storageUri: file:SOURCE
  maxBatchSize: 8
  inputs: [{name: X, dataType: TYPE_FP32, dims: [-1]}]
  outputs: [{name: Y, dataType: TYPE_FP32, dims: [-1]}]
"""

PIPE = """
---
apiVersion: argosy.dev/v1alpha1
kind: Ensemble
metadata: {name: pipe}
spec:
  poolRef: {name: laptop}
  maxBatchSize: 8
  inputs: [{name: A, dataType: TYPE_FP32, dims: [-1]}]
  outputs: [{name: C, dataType: TYPE_FP32, dims: [-1]}]
  steps:
  - {model: one, inputs: {X: A}, outputs: {Y: B}}
  - {model: two, inputs: {X: B}, outputs: {Y: C}}
"""

PYTHON = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        BODY

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("Y", pb_utils.get_input_tensor_by_name(request, "X").as_numpy() * FACTOR)]
            )
            for request in requests
        ]
"""


def model(name: str, version: int, source: str) -> str:
    """Return a model's manifest."""
    return MODEL.replace("NAME", name).replace("VERSION", str(version)).replace("SOURCE", source)


@dataclass
class Workspace:
    """A folder of manifests and models, and the state next to it."""

    root: Path

    @property
    def manifests(self) -> Path:
        """The folder that `argosy up` is given."""
        return self.root / "manifests"

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.root / "state"

    def write_model(self, source: str, factor: float, body: str = "pass") -> None:
        """Write a Python model that multiplies by `factor`."""
        folder = self.manifests / source
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / ".model.py"
        temporary.write_text(PYTHON.replace("FACTOR", repr(factor)).replace("BODY", body))
        temporary.replace(folder / "model.py")

    def write(self, *documents: str) -> None:
        """Write the manifests, as an editor saves them: at once."""
        temporary = self.manifests / ".all.yaml"
        temporary.write_text("".join([POOL, *documents]))
        temporary.replace(self.manifests / "all.yaml")


def wait_for(what: Callable[[], Any], why: Callable[[], str]) -> Any:
    """Wait until `what` returns something truthy, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        result = what()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"it never came:\n{why()}")


@dataclass
class Up:
    """A running `argosy up`."""

    workspace: Workspace
    process: subprocess.Popen[bytes]
    log: Path
    ports: tuple[int, int, int]

    @property
    def url(self) -> str:
        """The URL of its first server, over HTTP."""
        return f"http://127.0.0.1:{self.ports[0]}"

    @property
    def output(self) -> str:
        """All it has printed."""
        return self.log.read_text()

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return each resource's status by its name, as `argosy get` would read it."""
        try:
            document = json.loads((self.workspace.state / "status.json").read_text())
        except FileNotFoundError:
            return {}
        if document["pid"] != self.process.pid:
            return {}
        return {resource["metadata"]["name"]: resource.get("status", {}) for resource in document["resources"]}

    def condition(self, name: str, kind: str = "Ready") -> dict[str, Any]:
        """Return one condition of one resource."""
        conditions = self.statuses().get(name, {}).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == kind), {})

    def until_ready(self, *names: str) -> None:
        """Wait until these resources are Ready."""
        for name in names:
            wait_for(lambda name=name: self.condition(name).get("status") == "True", lambda: self.output)

    def until_says(self, words: str) -> None:
        """Wait until it has printed `words`."""
        wait_for(lambda: words in self.output, lambda: self.output)

    def got(self, name: str) -> dict[str, Any]:
        """Return the status of the one resource of this name, as `argosy get -o json` prints it."""
        code = "import typer; from argosy.cli.local.get import get; typer.run(get)"
        command = [sys.executable, "-c", code, "-o", "json", f"--state={self.workspace.state}"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
        self.got_errors = shown.stderr
        items = [item for item in json.loads(shown.stdout)["items"] if item["metadata"]["name"] == name]
        assert len(items) == 1, shown.stdout
        status: dict[str, Any] = items[0]["status"]
        return status

    def server_pid(self) -> int:
        """Return the process id of its only server."""
        (record,) = (self.workspace.state / "servers").glob("*/process.json")
        return int(json.loads(record.read_text())["pid"])

    def infer(self, name: str, value: float, client: httpx.Client | None = None) -> float:
        """Return a model's answer to one number."""
        tensor = "A" if name == "pipe" else "X"
        body = {"inputs": [{"name": tensor, "datatype": "FP32", "shape": [1, 1], "data": [value]}]}
        response = (client or httpx).post(f"{self.url}/v2/models/{name}/infer", json=body, timeout=20)
        assert response.status_code == 200, response.text
        return float(response.json()["outputs"][0]["data"][0])

    def end(self, how: int = signal.SIGTERM) -> int:
        """Signal it and wait; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)


def servers_of(workspace: Workspace) -> list[psutil.Process]:
    """Return every process that serves from this workspace's state folder."""
    processes = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = " ".join(process.info["cmdline"] or ())
        if str(workspace.state / "servers") in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            processes.append(process)
    return processes


def free_ports() -> tuple[int, int, int]:
    """Return three free ports."""
    one, two, three = state.free_ports(3)
    return one, two, three


def environment() -> dict[str, str]:
    """Return the variables of a process that runs this checkout."""
    path = [str(ROOT), str(ROOT / "operator"), str(ROOT / "runtime"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }


@dataclass
class Starter:
    """Starts `argosy up` on a workspace, as often as it is called; `end` ends what it started and what that left."""

    workspace: Workspace
    ports: tuple[int, int, int]
    code: str = REAL

    def __post_init__(self) -> None:
        self.started: list[Up] = []

    def __call__(self, *flags: str) -> Up:
        """Start `argosy up` with more flags."""
        log = self.workspace.root / f"up-{len(self.started)}.log"
        ports = zip(("http", "grpc", "metrics"), self.ports, strict=True)
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [
                    sys.executable,
                    *("-c", self.code),
                    str(self.workspace.manifests),
                    f"--state={self.workspace.state}",
                    *(f"--{name}-port={port}" for name, port in ports),
                    *flags,
                ],
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=environment(),
            )
        self.started.append(Up(self.workspace, process, log, self.ports))
        return self.started[-1]

    def end(self) -> None:
        """Leave nothing running."""
        for run in self.started:
            run.end()
        for left in servers_of(self.workspace):
            left.kill()


@dataclass
class Asking:
    """A thread that asks a model all the while; `failures` is what did not come back right."""

    run: Up
    name: str
    expected: float
    answers: int = 0

    def __enter__(self) -> "Asking":
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _ask(self) -> None:
        with httpx.Client() as client:
            while not self._stop.is_set():
                try:
                    answer = self.run.infer(self.name, 1.0, client)
                except (AssertionError, httpx.HTTPError) as error:
                    self.failures.append(repr(error))
                else:
                    self.answers += 1
                    if answer != self.expected:
                        self.failures.append(f"answered {answer}")
                self._stop.wait(0.01)

"""What the local tests share: a server that is not one, manifests, and `argosy up` as a process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from google.protobuf import text_format
from tests.peers.cache import PeerUnavailableError
from tests.peers.fixtures import give_up
from tests.peers.triton import install
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.fleet.facts import LoadedModel, LoadState
from argosy.local.control import RefusedError, UnreachableError

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 30.0


@dataclass
class FakeControl:
    """A server's control protocol over its repository folder. A version with a file `broken` does not load."""

    repository: Path
    loaded: dict[str, dict[int, str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    gone: bool = False

    async def index(self) -> tuple[LoadedModel, ...]:
        """Every version that is loaded."""
        if self.gone:
            raise UnreachableError("the server did not answer")
        return tuple(
            LoadedModel(name, version, LoadState.READY)
            for name, versions in self.loaded.items()
            for version in versions
        )

    async def load(self, name: str) -> None:
        """Read the folder as a server would; what was loaded stays where anything is wrong."""
        self.calls.append(f"load {name}")
        if self.gone:
            raise UnreachableError("the server did not answer")
        folder = self.repository / name
        config = text_format.Parse((folder / "config.pbtxt").read_text(), ModelConfig())
        found: dict[int, str] = {}
        for version in config.version_policy.specific.versions:
            if not (folder / str(version)).is_dir():
                raise RefusedError(f"version {version} has no folder")
            if (folder / str(version) / "broken").exists():
                raise RefusedError(f"failed to load '{name}': version {version} is broken")
            found[version] = "".join(
                path.read_text() for path in sorted((folder / str(version)).iterdir()) if path.is_file()
            )
        self.loaded[name] = found

    async def unload(self, name: str) -> None:
        """Drop a model."""
        self.calls.append(f"unload {name}")
        if self.gone:
            raise UnreachableError("the server did not answer")
        if self.loaded.pop(name, None) is None:
            raise RefusedError(f"failed to unload '{name}': unknown")


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
  poolRef: laptop
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
  poolRef: laptop
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
    """A model's manifest."""
    return MODEL.replace("NAME", name).replace("VERSION", str(version)).replace("SOURCE", source)


@dataclass
class Workspace:
    """A folder of manifests and models, and the state beside it."""

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
        """A Python model that multiplies by `factor`."""
        folder = self.manifests / source
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / ".model.py"
        beside.write_text(PYTHON.replace("FACTOR", repr(factor)).replace("BODY", body))
        beside.replace(folder / "model.py")

    def write(self, *documents: str) -> None:
        """The manifests, as an editor saves them: at once."""
        beside = self.manifests / ".all.yaml"
        beside.write_text("".join([POOL, *documents]))
        beside.replace(self.manifests / "all.yaml")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with nothing in it."""
    found = Workspace(tmp_path)
    found.manifests.mkdir()
    return found


def wait_for(what: Callable[[], Any], why: Callable[[], str]) -> Any:
    """What `what` returns once it is truthy."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
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
        """Where its first server answers over HTTP."""
        return f"http://127.0.0.1:{self.ports[0]}"

    @property
    def output(self) -> str:
        """All it has printed."""
        return self.log.read_text()

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Each resource's status by its name, as `argosy get` would read it."""
        try:
            document = json.loads((self.workspace.state / "status.json").read_text())
        except FileNotFoundError:
            return {}
        if document["pid"] != self.process.pid:
            return {}
        return {each["metadata"]["name"]: each.get("status", {}) for each in document["resources"]}

    def condition(self, name: str, kind: str = "Ready") -> dict[str, Any]:
        """One condition of one resource."""
        found = self.statuses().get(name, {}).get("conditions", [])
        return next((each for each in found if each["type"] == kind), {})

    def until_ready(self, *names: str) -> None:
        """Wait until these resources are Ready."""
        for name in names:
            wait_for(lambda name=name: self.condition(name).get("status") == "True", lambda: self.output)

    def until_says(self, words: str) -> None:
        """Wait until it has printed `words`."""
        wait_for(lambda: words in self.output, lambda: self.output)

    def server_pid(self) -> int:
        """The process id of its only server."""
        (record,) = (self.workspace.state / "servers").glob("*/process.json")
        return int(json.loads(record.read_text())["pid"])

    def infer(self, name: str, value: float, client: httpx.Client | None = None) -> float:
        """What a model answers to one number."""
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


@pytest.fixture
def ports() -> tuple[int, int, int]:
    """Three ports that are free."""
    sockets = [socket.socket() for _ in range(3)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        one, two, three = (each.getsockname()[1] for each in sockets)
    finally:
        for each in sockets:
            each.close()
    return one, two, three


REAL = "import typer; from argosy.cli.up import up; typer.run(up)"
FAKE = """
import functools, sys, typer
import argosy.cli.up as cli
cli.LocalFleet = functools.partial(cli.LocalFleet, program=(sys.executable, SCRIPT))
typer.run(cli.up)
""".replace("SCRIPT", repr(str(Path(__file__).parent / "fake_server.py")))


@pytest.fixture
def up(request: pytest.FixtureRequest) -> Iterator[Callable[..., Up]]:
    """Starts `argosy up` on the workspace, with the fake server under it."""
    yield from _starter(request, FAKE)


TRITON = """
import functools, typer
import argosy.cli.up as cli
from tests.peers.triton import environment, install
import os
folder = install()
home = folder / "pytriton" / "tritonserver"
os.environ.update(environment(folder))
program = (str(home / "bin" / "tritonserver"), f"--backend-directory={home / 'backends'}")
cli.LocalFleet = functools.partial(cli.LocalFleet, program=program)
typer.run(cli.up)
"""


@pytest.fixture
def triton_up(request: pytest.FixtureRequest) -> Iterator[Callable[..., Up]]:
    """The same with NVIDIA's own server, of which the agent knows nothing but the public protocol."""
    try:
        install()
    except PeerUnavailableError as reason:
        give_up(reason)
    yield from _starter(request, TRITON)


@pytest.fixture(params=[FAKE, REAL], ids=["fake", "runtime"])
def any_up(request: pytest.FixtureRequest) -> Iterator[Callable[..., Up]]:
    """The same twice: with the fake server, and with the bundled runtime."""
    yield from _starter(request, request.param)


def _starter(request: pytest.FixtureRequest, code: str) -> Iterator[Callable[..., Up]]:
    """A starter; whatever it leaves is ended when the test is over."""
    workspace, ports = request.getfixturevalue("workspace"), request.getfixturevalue("ports")
    started: list[Up] = []

    def start(*flags: str) -> Up:
        log = workspace.root / f"up-{len(started)}.log"
        path = os.pathsep.join(
            [str(ROOT), str(ROOT / "operator"), str(ROOT / "runtime"), os.environ.get("PYTHONPATH", "")]
        )
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [
                    sys.executable,
                    *("-c", code),
                    str(workspace.manifests),
                    f"--state={workspace.state}",
                    f"--http-port={ports[0]}",
                    f"--grpc-port={ports[1]}",
                    f"--metrics-port={ports[2]}",
                    *flags,
                ],
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
            )
        started.append(Up(workspace, process, log, ports))
        return started[-1]

    yield start
    for each in started:
        each.end()
    for left in servers_of(workspace):
        left.kill()


def servers_of(workspace: Workspace) -> list[psutil.Process]:
    """Every process that serves from this workspace's state folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = " ".join(process.info["cmdline"] or ())
        if str(workspace.state / "servers") in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


@pytest.fixture
def servers(workspace: Workspace) -> Callable[[], list[psutil.Process]]:
    """The processes that serve from the workspace's state folder."""
    return lambda: servers_of(workspace)


@pytest.fixture
def documents() -> Callable[[str, int, str], str]:
    """A model's manifest from its name, version and source."""
    return model


@pytest.fixture
def pipe() -> str:
    """An ensemble of the models `one` and `two`."""
    return PIPE


@pytest.fixture
def fake(tmp_path: Path) -> FakeControl:
    """A server that is not one, over `server/repository`."""
    return FakeControl(tmp_path / "server" / "repository")

"""The peers: how each is started, and its requests."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from benchmarks.comparison.load import MODELS
from benchmarks.peers import environments
from e2e.cluster.state import free_ports
from tests.peers.argosy import argosy
from tests.peers.cache import PeerUnavailableError

APPS = Path(__file__).parent / "apps"
ECHOED = [float(value) for value in range(16)]
CLASSIFIED = [value % 257 for value in range(2048)]
_START_SECONDS = 180.0
_END_SECONDS = 20.0


@dataclass(frozen=True)
class Running:
    """A server that answers: its process, its HTTP port, and the requests to `echo` and `classify`: path and body."""

    pid: int
    port: int
    requests: dict[str, tuple[str, bytes]]


@dataclass(frozen=True)
class Peer:
    """`requirements` are pip's; `command` takes the interpreter, a scratch folder and the port."""

    requirements: tuple[str, ...]
    command: Callable[[Path, Path, int], list[str]]
    v2: bool = False


def _mlserver(python: Path, folder: Path, port: int) -> list[str]:
    shutil.copytree(APPS, folder, dirs_exist_ok=True)
    settings = {"host": "127.0.0.1", "http_port": port, "grpc_port": free_ports(1)[0], "metrics_port": free_ports(1)[0]}
    (folder / "settings.json").write_text(json.dumps(settings))
    for name in ("echo", "classify"):
        (folder / name).mkdir()
        model = {"name": name, "implementation": f"mlserver_models.{name.capitalize()}"}
        (folder / name / "model-settings.json").write_text(json.dumps(model))
    return [str(python), "-c", "from mlserver.cli import main; main()", "start", str(folder)]


def _litserve(python: Path, folder: Path, port: int) -> list[str]:
    return [str(python), str(APPS / "litserve_app.py")]


def _bentoml(python: Path, folder: Path, port: int) -> list[str]:
    options = ["--working-dir", str(APPS), "--host", "127.0.0.1", "--port", str(port)]
    return [str(python), "-m", "bentoml", "serve", "bentoml_app:Service", *options]


def _ray(python: Path, folder: Path, port: int) -> list[str]:
    return [str(python), str(APPS / "ray_app.py")]


PEERS = {
    # Its workers ask uvloop for a loop where there is none, which later releases of it refuse.
    "mlserver": Peer(("mlserver==1.7.1", "uvloop<0.22"), _mlserver, v2=True),
    "litserve": Peer(("litserve==0.2.19",), _litserve),
    "bentoml": Peer(("bentoml==1.4.39",), _bentoml),
    "ray": Peer(("ray[serve]==2.60.0",), _ray),
}


@contextmanager
def serving(name: str) -> Iterator[Running]:
    """Yield a peer that answers. Raises PeerUnavailableError where it cannot be installed or does not start."""
    peer = PEERS[name]
    python, model = environments.python(name, peer.requirements), environments.onnx_model()
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log"
        home = Path(scratch) / "home"
        home.mkdir()
        own = {"PORT": str(port), "MODEL": str(model), "PYTHONPATH": str(APPS), "BENTOML_HOME": str(home)}
        no_telemetry = {"BENTOML_DO_NOT_TRACK": "True", "RAY_USAGE_STATS_ENABLED": "0", "DO_NOT_TRACK": "1"}
        with log.open("wb") as sink:
            process = subprocess.Popen(
                peer.command(python, Path(scratch) / "app", port),
                env={**os.environ, **own, **no_telemetry}, cwd=scratch, stdout=sink, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        try:
            running = Running(process.pid, port, requests(peer.v2))
            _wait(name, running, process, log)
            yield running
        finally:
            _end(process)


@contextmanager
def serving_argosy() -> Iterator[Running]:
    """Yield Argosy with the two models."""
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / "models"
        shutil.copytree(MODELS / "unbatched", repository / "echo")
        config = repository / "echo" / "config.pbtxt"
        config.write_text(config.read_text().replace('"unbatched"', '"echo"'))
        (repository / "classify" / "1").mkdir(parents=True)
        shutil.copy(environments.onnx_model(), repository / "classify" / "1" / "model.onnx")
        threads = 'parameters { key: "intra_op_thread_count" value { string_value: "1" } }\n'
        (repository / "classify" / "config.pbtxt").write_text(
            f'name: "classify"\nbackend: "onnxruntime"\nmax_batch_size: 8\n{threads}'
        )
        server = argosy(repository, log=Path(scratch) / "log")
        try:
            yield Running(server.process.pid, server.ports.http, requests(v2=True))
        finally:
            server.stop()


def requests(v2: bool) -> dict[str, tuple[str, bytes]]:
    """Return the requests of the two models: by the V2 protocol, or by that of peers without it."""
    if not v2:
        inputs = {"echo": ECHOED, "classify": CLASSIFIED}
        return {name: (f"/{name}", json.dumps({"input": values}).encode()) for name, values in inputs.items()}
    inputs = {
        "echo": {"name": "INPUT0", "datatype": "FP32", "shape": [1, 16], "data": ECHOED},
        "classify": {"name": "bytes", "datatype": "INT32", "shape": [1, 2048], "data": CLASSIFIED},
    }
    return {
        name: (f"/v2/models/{name}/infer", json.dumps({"inputs": [tensor]}).encode()) for name, tensor in inputs.items()
    }


def _wait(name: str, running: Running, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not all(_answers(running.port, *request) for request in running.requests.values()):
        if process.poll() is not None or time.monotonic() > deadline:
            words = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise PeerUnavailableError(f"{name} does not answer:\n{words}")
        time.sleep(0.2)


def _answers(port: int, path: str, body: bytes) -> bool:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status == 200
    except (OSError, urllib.error.HTTPError):
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started."""
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in children:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue

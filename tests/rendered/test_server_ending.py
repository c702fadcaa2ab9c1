"""The command that runs before a server ends waits until it is idle, on NVIDIA's server as on ours."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from tests.acceptance.running import PYTHON
from tests.peers.server import Server

from argosy.render.workloads.pods.ending import until_idle

IDLE_S, PATIENCE_S = 3, 60
CONFIG = """backend: "python"
max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }
"""
BODY = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [1.0]}]}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("argosy_server", id="argosy"),
        pytest.param("triton_server", id="triton", marks=pytest.mark.triton),
    ],
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Return a server of each kind, with a model."""
    repository = tmp_path_factory.mktemp("ending")
    (repository / "m" / "1").mkdir(parents=True)
    (repository / "m" / "config.pbtxt").write_text(CONFIG)
    (repository / "m" / "1" / "model.py").write_text(PYTHON.replace("FACTOR", "2.0").replace("BODY", "pass"))
    started: Server = request.getfixturevalue(request.param)(repository)
    return started


class Load:
    """A request after the other while the block runs."""

    def __init__(self, server: Server) -> None:
        self._url = f"http://{server.http}/v2/models/m/infer"
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._enough.is_set():
            httpx.post(self._url, json=BODY, timeout=PATIENCE_S).raise_for_status()
            self._enough.wait(0.05)


@pytest.fixture
def hook(server: Server) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the command, started."""
    started = subprocess.Popen(until_idle(server.ports.metrics, IDLE_S, 600))
    yield started
    started.kill()
    started.wait()


def test_it_waits_while_requests_come_and_ends_when_none_do(server: Server, hook: subprocess.Popen[bytes]) -> None:
    with Load(server):
        time.sleep(2 * IDLE_S)
        assert hook.poll() is None
    assert hook.wait(PATIENCE_S) == 0


def test_it_waits_no_longer_than_it_may(server: Server) -> None:
    with Load(server):
        assert subprocess.run(until_idle(server.ports.metrics, 300, 1), timeout=PATIENCE_S).returncode == 0


def test_it_does_not_wait_for_a_server_that_is_gone() -> None:
    assert subprocess.run(until_idle(1, 300, 300), timeout=PATIENCE_S, stderr=subprocess.DEVNULL).returncode == 0


def test_a_silent_server_counts_as_a_busy_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        silent = subprocess.Popen(until_idle(port, 1, 300, answer_s=2))
        try:
            mute.settimeout(PATIENCE_S)
            first, _ = mute.accept()
            second, _ = mute.accept()
            assert silent.poll() is None
            first.close()
            second.close()
        finally:
            silent.kill()
            silent.wait()

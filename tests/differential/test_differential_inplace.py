"""Changes of a serving model, on both servers: instances come and go; only Argosy changes more."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.differential.conftest import PEERS
from tests.differential.http_calls import get, infer, post, send, tensor
from tests.peers.fixtures import StartServer
from tests.peers.server import Server

STATISTICS_PATIENCE_S = 30.0
CONFIG = """
name: "m"
backend: "python"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { count: %d kind: KIND_CPU } ]
"""
MODEL = """
import os, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        with open(FOLDER + "/loads", "a") as file:
            file.write(args["model_instance_name"] + "\\n")
        if os.path.exists(FOLDER + "/full"):
            raise RuntimeError("no memory left")

    def execute(self, requests):
        time.sleep(0.005)
        inputs = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]) for x in inputs]
"""


class Changing:
    """A server with one model, whose configuration changes."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self._folder = server, folder

    def change(self, config: str) -> tuple[int, str]:
        """Change the configuration that the server serves; return the status and the text of its answer."""
        (self._folder / "models/m/config.pbtxt").write_text(config)
        answer = send(self.server.http, post("/v2/repository/models/m/load", {}))
        return answer["status"], str(answer["body"])

    def ask(self) -> int:
        """Send one request and return the status."""
        return int(send(self.server.http, infer("m", tensor("X", [1, 1], "FP32", [1.0])))["status"])

    @property
    def loads(self) -> int:
        """The number of instances that have been loaded."""
        return len((self._folder / "loads").read_text().splitlines())

    def counts(self, expected: int) -> int:
        """Wait until the model's statistics count so many requests. Triton counts one after it answered it."""
        ends = time.monotonic() + STATISTICS_PATIENCE_S
        while (requests := self.requests) != expected and time.monotonic() < ends:
            time.sleep(0.02)
        return requests

    @property
    def requests(self) -> int:
        """The number of requests in the model's statistics by now."""
        (model,) = send(self.server.http, get("/v2/models/m/stats"))["body"]["model_stats"]
        return int(model["inference_stats"]["success"]["count"])

    @property
    def served(self) -> int:
        """The number of instances in the configuration that serves."""
        config = send(self.server.http, get("/v2/models/m/config"))["body"]
        return int(config["instance_group"][0]["count"])

    @property
    def own(self) -> Path:
        """The configuration that the model's version has of its own."""
        return self._folder / "models/m/1/argosy.pbtxt"

    @property
    def full(self) -> Path:
        """While this file is there, nothing more can be loaded."""
        return self._folder / "full"


@pytest.fixture(params=PEERS)
def changing(
    request: pytest.FixtureRequest, triton_server: StartServer, argosy_server: StartServer, tmp_path: Path
) -> Iterator[Changing]:
    """Yield each side in turn, with one instance of the model."""
    model = tmp_path / "models/m/1/model.py"
    model.parent.mkdir(parents=True)
    model.write_text(f"FOLDER = {str(tmp_path)!r}\n{MODEL}")
    (tmp_path / "models/m/config.pbtxt").write_text(CONFIG % 1)
    start = {"triton": triton_server, "argosy": argosy_server}[request.param]
    server = start(tmp_path / "models", "--model-control-mode=explicit", "--load-model=m")
    yield Changing(server, tmp_path)
    server.stop()


def test_instances_come_and_go(changing: Changing) -> None:
    # Triton 2.51 loads the model again at the first change after its start, and no more from then on.
    changing.change(CONFIG % 2)
    loads, requests = changing.loads, changing.requests
    for count in (3, 1, 2):
        status, message = changing.change(CONFIG % count)
        assert (status, changing.served) == (200, count), message
        assert changing.ask() == 200
    assert changing.loads == loads + 1 + 1
    assert changing.counts(requests + 3) == requests + 3, "it is the same model, and its statistics go on"


@pytest.mark.parametrize("changing", ["argosy"], indirect=True)
def test_instances_come_and_go_while_requests_are_answered(changing: Changing) -> None:
    # By Argosy alone: one in five times Triton 2.51 answers neither the change nor a request any more.
    stop, statuses = threading.Event(), list[int]()

    def client() -> None:
        while not stop.is_set():
            statuses.append(changing.ask())

    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    try:
        for count in (2, 3, 1, 2):
            status, message = changing.change(CONFIG % count)
            assert (status, changing.served) == (200, count), message
    finally:
        stop.set()
        for thread in clients:
            thread.join()
    assert set(statuses) == {200}
    assert changing.loads == 1 + 1 + 1 + 1
    assert changing.counts(len(statuses)) == len(statuses)


def test_batching_is_reloaded_by_triton_alone(changing: Changing) -> None:
    changing.ask()
    status, message = changing.change(CONFIG % 1 + "dynamic_batching { max_queue_delay_microseconds: 100 }")
    assert status == 200, message
    assert changing.ask() == 200
    loads, requests = (1, 2) if changing.server.name == "argosy" else (2, 1)
    assert changing.loads == loads
    assert changing.counts(requests) == requests


def test_a_lower_batch_limit_is_reloaded_by_triton_alone(changing: Changing) -> None:
    assert changing.change((CONFIG % 1).replace("size: 8", "size: 2"))[0] == 200
    three = send(changing.server.http, infer("m", tensor("X", [3, 1], "FP32", [1.0, 2.0, 3.0])))
    assert three["status"] == 400
    assert "batch-size must be <= 2" in three["body"]["error"]
    assert changing.loads == (1 if changing.server.name == "argosy" else 2)


def test_an_instance_that_cannot_load_leaves_those_that_serve(changing: Changing) -> None:
    changing.full.touch()
    status, message = changing.change(CONFIG % 3)
    assert status == 400
    assert "no memory left" in message
    assert changing.ask() == 200
    changing.full.unlink()
    assert changing.change(CONFIG % 3)[0] == 200
    assert changing.served == 3


def test_a_versions_own_configuration_is_read_by_argosy_alone(changing: Changing) -> None:
    changing.own.write_text((CONFIG % 1).replace("size: 8", "size: 2"))
    status, message = changing.change(CONFIG % 1)
    assert status == 200, message
    three = send(changing.server.http, infer("m", tensor("X", [3, 1], "FP32", [1.0, 2.0, 3.0])))
    assert three["status"] == (400 if changing.server.name == "argosy" else 200)
    changing.own.unlink()
    assert changing.change(CONFIG % 1)[0] == 200
    assert send(changing.server.http, infer("m", tensor("X", [3, 1], "FP32", [1.0, 2.0, 3.0])))["status"] == 200

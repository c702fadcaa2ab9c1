"""The start with models that are broken or missing, on both servers: exit, readiness, index, and the errors."""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.differential.conftest import PEERS
from tests.differential.http_calls import get, infer, post, send, tensor
from tests.peers.fixtures import StartServer
from tests.peers.server import Server, ServerStartError

CONFIG = """
backend: "python"
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""
MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        {initialize}

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]) for x in inputs]
"""
ENSEMBLE = """
platform: "ensemble"
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
ensemble_scheduling { step [ { model_name: "nowhere" model_version: -1
  input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } ] }
"""
FAILS = {"initialize": 'raise ValueError("no luck")'}
UNKNOWN = "Request for unknown model: '{}' is not found"
NO_VERSION = "Request for unknown model: '{}' has no available versions"
ROWS: dict[str, tuple[str, str, bool]] = {
    "empty": (UNKNOWN, "", True),
    "noconfig": (UNKNOWN, "", True),
    "typo": (UNKNOWN, "", True),
    "wrongname": (UNKNOWN, "", True),
    "noversion": (NO_VERSION, "", False),
    "policy": (NO_VERSION, "", False),
    "failing": (NO_VERSION, "UNAVAILABLE", False),
    "nobackend": (NO_VERSION, "UNAVAILABLE", False),
    "ensemble": (UNKNOWN, "", True),
}
"""Per broken model: the error of a request for it, its state in the index, and whether the server is ready with it."""


def write(repository: Path, name: str) -> None:
    """Write one of the models."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    configs = {
        "typo": CONFIG + "max_batch_sice: 8",
        "wrongname": 'name: "other"' + CONFIG,
        "policy": CONFIG + "version_policy { specific { versions: [ 9 ] } }",
        "nobackend": CONFIG.replace("python", "nope"),
        "ensemble": ENSEMBLE,
    }
    if name not in ("empty", "noconfig"):
        (repository / name / "config.pbtxt").write_text(configs.get(name, CONFIG))
    if name in ("empty", "noversion"):
        version.rmdir()
    elif name != "noconfig":
        initialize = FAILS["initialize"] if name == "failing" else "pass"
        (version / "model.py").write_text(MODEL.format(initialize=initialize))


@pytest.fixture(params=PEERS)
def start(request: pytest.FixtureRequest, triton_server: StartServer, argosy_server: StartServer) -> StartServer:
    """Return the start of each side in turn."""
    return {"triton": triton_server, "argosy": argosy_server}[request.param]


def x(model: str, server: Server) -> Any:
    """Return the answer of a model to 3: Y, or the error."""
    answer = send(server.http, infer(model, tensor("X", [1], "INT32", [3])))
    body = answer["body"]
    return (answer["status"], body.get("error") or body["outputs"][0]["data"][0])


def health(server: Server) -> tuple[int, int]:
    """Return the statuses of live and ready, once the server has tried to load its models."""
    ends = time.monotonic() + 30
    while "failed to load all models" not in server.tail(1000) and time.monotonic() < ends:
        time.sleep(0.1)
    live, ready = (send(server.http, get(f"/v2/health/{what}"))["status"] for what in ("live", "ready"))
    return live, ready


def index(server: Server) -> dict[str, dict[str, str]]:
    """Return the rows of the index by model."""
    return {row["name"]: row for row in send(server.http, post("/v2/repository/index"))["body"]}


def test_all_that_can_be_wrong_next_to_a_good_model(start: StartServer, tmp_path: Path) -> None:
    for name in ("echo", *ROWS):
        write(tmp_path, name)
    server = start(tmp_path, "--exit-on-error=false", wait_for="/v2")
    assert health(server) == (200, 400)
    assert x("echo", server) == (200, 3)
    rows = index(server)
    for name, (error, state, _) in ROWS.items():
        status, text = x(name, server)
        # Argosy's error continues with the reason.
        assert (status, text.partition(";")[0]) == (404, error.format(name))
        assert send(server.http, get(f"/v2/models/{name}/ready"))["status"] == 400
        if state:
            assert (rows[name]["version"], rows[name]["state"]) == ("1", state)
    assert rows["empty"] == {"name": "empty"}
    server.stop()


@pytest.mark.parametrize("name", ["empty", "typo", "noversion", "failing", "ensemble"])
def test_whether_the_server_is_ready(start: StartServer, tmp_path: Path, name: str) -> None:
    write(tmp_path, "echo")
    write(tmp_path, name)
    server = start(tmp_path, "--exit-on-error=false", wait_for="/v2")
    assert health(server) == (200, 200 if ROWS[name][2] else 400)
    server.stop()
    server = start(tmp_path, "--exit-on-error=false", "--strict-readiness=false", wait_for="/v2/health/ready")
    assert health(server) == (200, 200)
    server.stop()


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("empty", ()),
        ("failing", ("--model-control-mode=poll",)),
        ("typo", ("--model-control-mode=explicit", "--load-model=*")),
        ("echo", ("--model-control-mode=explicit", "--load-model=nope")),
        ("echo", ("--model-control-mode=explicit", "--load-model=*", "--load-model=echo")),
    ],
)
def test_what_ends_the_start(start: StartServer, tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    write(tmp_path, name)
    with pytest.raises(ServerStartError, match=r"creating server: \w+|Wildcard model name"):
        start(tmp_path, *flags, wait_for="/v2/health/ready/never")


@pytest.mark.parametrize("flags", [(), ("--model-control-mode=explicit", "--load-model=echo")])
def test_a_missing_repository_next_to_a_good_one(start: StartServer, tmp_path: Path, flags: tuple[str, ...]) -> None:
    repository, missing = tmp_path / "models", tmp_path / "nowhere"
    write(repository, "echo")
    server = start(repository, f"--model-repository={missing}", "--exit-on-error=false", *flags, wait_for="/v2")
    time.sleep(1)
    assert [send(server.http, get(f"/v2/health/{what}"))["status"] for what in ("live", "ready")] == [400, 400]
    refused = {"error": "Server not ready"}
    for call in (
        get("/v2/models/echo/ready"),
        get("/v2/models/echo"),
        get("/v2/models/stats"),
        post("/v2/repository/index"),
        post("/v2/repository/models/echo/load"),
        infer("echo", tensor("X", [1], "INT32", [3])),
    ):
        answer = send(server.http, call)
        assert (answer["status"], answer["body"]) == (503, refused)
    assert f"failed to stat file {missing}" in server.tail(200)
    server.stop()


def test_a_model_in_two_repositories(start: StartServer, tmp_path: Path) -> None:
    for repository in ("one", "two"):
        write(tmp_path / repository, "echo")
    more = f"--model-repository={tmp_path / 'two'}"
    server = start(tmp_path / "one", more, "--exit-on-error=false", wait_for="/v2")
    health(server)
    reason = "model appears in two or more repositories"
    assert index(server)["echo"] == {"name": "echo", "state": "UNAVAILABLE", "reason": reason}
    status, text = x("echo", server)
    assert (status, text.partition(";")[0]) == (404, UNKNOWN.format("echo"))
    server.stop()


def test_retries(start: StartServer, tmp_path: Path) -> None:
    repository, attempts = tmp_path / "models", tmp_path / "attempts"
    write(repository, "echo")
    initialize = f"""
        with open({str(attempts)!r}, "a") as file:
            file.write("x")
        if len(open({str(attempts)!r}).read()) < 3:
            raise ValueError("not yet")"""
    (repository / "echo/1/model.py").write_text(MODEL.format(initialize=initialize))
    server = start(repository, "--model-load-retry-count=2")
    assert x("echo", server) == (200, 3)
    assert attempts.read_text() == "xxx"
    server.stop()


def test_a_configuration_by_its_name(start: StartServer, tmp_path: Path) -> None:
    for name in ("echo", "plain"):
        write(tmp_path, name)
    (tmp_path / "echo/configs").mkdir()
    named = CONFIG + 'parameters { key: "gpu" value { string_value: "h100" } }'
    (tmp_path / "echo/configs/h100.pbtxt").write_text(named)
    server = start(tmp_path, "--model-config-name=h100")
    parameters = [
        send(server.http, get(f"/v2/models/{name}/config"))["body"]["parameters"] for name in ("echo", "plain")
    ]
    assert parameters == [{"gpu": {"string_value": "h100"}}, {}]
    server.stop()

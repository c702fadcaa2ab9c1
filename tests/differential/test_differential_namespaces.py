"""Models of the same name in several repositories (`--model-namespacing`), on both servers."""

import shutil
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.differential.conftest import PEERS
from tests.differential.http_calls import Call, get, infer, post, send, tensor
from tests.peers.fixtures import StartServer
from tests.peers.server import Server

CONFIG = """
backend: "python"
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""
MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + ADDED)]) for x in inputs]
"""
ENSEMBLE = """
platform: "ensemble"
input [ {{ name: "X" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [ {{ name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }} ]
ensemble_scheduling {{ step [ {{ model_name: "{step}" model_version: -1 {more}
  input_map {{ key: "X" value: "X" }} output_map {{ key: "Y" value: "Y" }} }} ] }}
"""
AMBIGUOUS = {
    "error": "There are 2 identifiers of model 'inner' in global map, model namespace must be provided to resolve "
    "ambiguity."
}


def model(repository: Path, name: str, added: int) -> None:
    """Write a model that adds a number."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(CONFIG)
    (version / "model.py").write_text(f"ADDED = {added}\n{MODEL}")


def ensemble(repository: Path, name: str, step: str, more: str = "") -> None:
    """Write an ensemble of one step."""
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(ENSEMBLE.format(step=step, more=more))


Run = Callable[..., Server]


@pytest.fixture(params=PEERS)
def run(request: pytest.FixtureRequest, triton_server: StartServer, argosy_server: StartServer, tmp_path: Path) -> Run:
    """Return the start of each side in turn, on two repositories with an `inner` each, and a third one."""
    one, two = tmp_path / "one", tmp_path / "two"
    for repository, name, added in ((one, "outer1", 10), (two, "outer2", 20)):
        model(repository, "inner", added)
        ensemble(repository, name, "inner")
        ensemble(repository, "shared", "inner")
    (tmp_path / "three").mkdir()
    start = {"triton": triton_server, "argosy": argosy_server}[request.param]

    def call(*flags: str) -> Server:
        more = [f"--model-repository={tmp_path / name}" for name in ("two", "three")]
        return start(one, *more, "--model-namespacing=true", "--exit-on-error=false", *flags, wait_for="/v2")

    return call


def until(server: Server, call: Call, reached: Callable[[Any], bool]) -> Any:
    """Repeat a call until its body is as it should be, and return that."""
    ends = time.monotonic() + 30
    while not reached(body := send(server.http, call)["body"]) and time.monotonic() < ends:
        time.sleep(0.2)
    return body


def index(server: Server) -> list[tuple[str, str]]:
    """Return names and states, once every model is loaded or failed."""
    rows = until(server, post("/v2/repository/index"), lambda rows: not any("ING" in r.get("state", "") for r in rows))
    return [(row["name"], row.get("state", "")) for row in rows]


def x(server: Server, name: str) -> Any:
    """Return the answer of a model to 3: Y, or status and error."""
    answer = send(server.http, infer(name, tensor("X", [1], "INT32", [3])))
    body = answer["body"]
    return body["outputs"][0]["data"][0] if answer["status"] == 200 else (answer["status"], body["error"])


def test_what_names_mean(run: Run, tmp_path: Path) -> None:
    three = tmp_path / "three"
    model(tmp_path / "one", "single", 1)
    ensemble(three, "cross", "single")
    ensemble(three, "lost", "inner")
    ensemble(tmp_path / "one", "far", "inner", f'model_namespace: "{tmp_path / "two"}"')
    server = run()
    until(server, get("/v2/models/cross/ready"), lambda body: body == "")
    rows = index(server)
    one, others = ("far", "inner", "outer1", "shared", "single"), ("cross", "inner", "outer2", "shared")
    assert [row for row in rows if row[0] != "lost"] == [(name, "READY") for name in (*one, *others)]
    assert (x(server, "outer1"), x(server, "outer2")) == (13, 23)
    assert (x(server, "cross"), x(server, "far")) == (4, 13)
    assert x(server, "inner") == (400, AMBIGUOUS["error"])
    assert x(server, "shared") == (400, AMBIGUOUS["error"].replace("inner", "shared"))
    assert x(server, "inner/versions/1") == x(server, "inner")
    assert x(server, "nope") == (400, "Request for unknown model: 'nope' is not found")
    status, text = x(server, "lost")
    # Argosy's errors continue with the reason.
    assert (status, text.partition(";")[0]) == (404, f"Request for unknown model: '{three}::lost' is not found")
    assert x(server, "outer1/versions/3") == (
        404,
        f"Request for unknown model: '{tmp_path / 'one'}::outer1' version 3 is not found",
    )
    for name, status in (("inner", 400), ("outer1", 200), ("nope", 400), ("lost", 400)):
        assert send(server.http, get(f"/v2/models/{name}/ready"))["status"] == status
    assert send(server.http, get("/v2/health/ready"))["status"] == 200
    assert send(server.http, get("/v2/models/inner"))["body"] == AMBIGUOUS
    assert send(server.http, get("/v2/models/inner/config"))["body"] == AMBIGUOUS
    refused = {"error": "requested model 'inner' is not available"}
    assert send(server.http, get("/v2/models/inner/stats"))["body"] == refused
    server.stop()


def test_configurations_statistics_and_metrics(run: Run, tmp_path: Path) -> None:
    server = run()
    until(server, get("/v2/models/outer2/ready"), lambda body: body == "")
    assert (x(server, "outer1"), x(server, "outer1"), x(server, "outer2")) == (13, 13, 23)
    for number, name in ((1, "one"), (2, "two")):
        config = send(server.http, get(f"/v2/models/outer{number}/config"))["body"]
        assert config["ensemble_scheduling"]["step"][0]["model_namespace"] == str(tmp_path / name)
        statistics = send(server.http, get(f"/v2/models/outer{number}/stats"))["body"]["model_stats"]
        assert [(row["name"], row["inference_count"]) for row in statistics] == [(f"outer{number}", 3 - number)]
    with urllib.request.urlopen(f"http://{server.metrics}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    for name, count in (("one", 2), ("two", 1)):
        labels = f'model="inner",namespace="{tmp_path / name}",version="1"'
        assert f"nv_inference_request_success{{{labels}}} {count}" in lines
    server.stop()


def test_loads_and_unloads_by_name(run: Run, tmp_path: Path) -> None:
    model(tmp_path / "two", "single", 5)
    server = run("--model-control-mode=explicit")

    def control(what: str, name: str) -> tuple[int, Any]:
        answer = send(server.http, post(f"/v2/repository/models/{name}/{what}", {}))
        return answer["status"], answer["body"]

    assert control("load", "outer1") == (200, "")
    assert (x(server, "outer1"), x(server, "inner")[0]) == (13, 400)
    assert x(server, "outer2") == (400, "Request for unknown model: 'outer2' is not found")
    assert [name for name, state in index(server) if state == "READY"] == ["inner", "outer1", "inner"]
    assert control("unload", "inner") == (200, "")
    assert [name for name, state in index(server) if state == "READY"] == []
    assert x(server, "inner") == (404, "Identifier of model 'inner' is not found in global map")
    assert control("load", "nope")[0] == 500
    assert control("load", "single") == (200, "")
    assert x(server, "single") == 8
    shutil.move(tmp_path / "one" / "inner", tmp_path / "kept")
    assert control("load", "outer1") == (200, "")
    assert control("load", "inner") == (200, "")
    assert (x(server, "inner"), x(server, "outer1")) == (23, 23)
    shutil.move(tmp_path / "kept", tmp_path / "one" / "inner")
    assert control("load", "inner") == (200, "")
    assert (x(server, "inner")[0], x(server, "outer1")) == (400, 13)
    server.stop()


def test_a_member_that_comes_and_goes_while_the_repositories_are_polled(run: Run, tmp_path: Path) -> None:
    server = run("--model-control-mode=poll", "--repository-poll-secs=1")
    until(server, get("/v2/models/outer1/ready"), lambda body: body == "")
    shutil.move(tmp_path / "one" / "inner", tmp_path / "kept")
    call = infer("outer1", tensor("X", [1], "INT32", [3]))
    assert until(server, call, lambda body: body.get("outputs", [{}])[0].get("data") == [23])["outputs"]
    assert x(server, "outer2") == 23
    if server.name == "argosy":
        # Triton 2.51 still counts the one that is gone.
        assert x(server, "inner") == 23
    shutil.move(tmp_path / "kept", tmp_path / "one" / "inner")
    assert until(server, call, lambda body: body.get("outputs", [{}])[0].get("data") == [13])["outputs"]
    assert (x(server, "inner")[0], x(server, "outer2")) == (400, 23)
    server.stop()

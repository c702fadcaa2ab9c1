"""`argosy render` writes a repository that NVIDIA's Triton serves, and answers as Argosy's own server does."""

import json
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from argosy.cli.application import application

HERE = Path(__file__).parent
MODELS = HERE.parent / "models"
SERVED = {"identity": 3, "add-sub": 1, "scale": 2, "words": 1, "chain": 5, "diamond": 1}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the one server's rendered repository."""
    folder = tmp_path_factory.mktemp("rendered")
    text = (HERE / "manifests.yaml").read_text().replace("MODELS", str(MODELS))
    (folder / "manifests.yaml").write_text(text)
    result = CliRunner().invoke(application(), ["render", "-f", str(folder), "-o", str(folder / "out")])
    assert result.exit_code == 0, result.output
    (server,) = [path for path in (folder / "out").iterdir() if path.is_dir()]
    assert {path.name for path in server.iterdir()} == set(SERVED)
    return server


@pytest.fixture(scope="module", params=["triton", "argosy"])
def url(request: pytest.FixtureRequest, repository: Path) -> str:
    """Return the URL of a server on the repository."""
    server = request.getfixturevalue(f"{request.param}_server")(repository)
    return f"http://{server.http}/v2/models"


def ask(url: str, body: object = None) -> dict:
    """Return a JSON answer."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=30) as answer:
        return json.load(answer)


def tensor(name: str, datatype: str, data: list) -> dict:
    return {"name": name, "datatype": datatype, "shape": [1, len(data)], "data": data}


def outputs(url: str, model: str, *tensors: dict) -> dict[str, list]:
    answer = ask(f"{url}/{model}/infer", {"inputs": list(tensors)})
    assert answer["model_version"] == str(SERVED[model])
    return {output["name"]: output["data"] for output in answer["outputs"]}


def test_every_model_is_served_at_its_version(url: str):
    for model, version in SERVED.items():
        assert ask(f"{url}/{model}")["versions"] == [str(version)]


def test_what_was_declared_is_what_is_configured(url: str):
    identity = ask(f"{url}/identity/config")
    batching = identity["dynamic_batching"]
    assert (batching["priority_levels"], batching["max_queue_delay_microseconds"]) == (2, 100)
    assert batching["default_queue_policy"]["timeout_action"] == "DELAY"
    assert batching["priority_queue_policy"]["1"]["max_queue_size"] == 10
    assert identity["metric_tags"] == {"team": "rendered"}
    add_sub = ask(f"{url}/add-sub/config")
    assert add_sub["instance_group"][0]["count"] == 2
    assert add_sub["dynamic_batching"]["preserve_ordering"] is True
    assert ask(f"{url}/add-sub/stats")["model_stats"][0]["inference_count"] >= 2, "each instance was warmed up"
    steps = ask(f"{url}/diamond/config")["ensemble_scheduling"]["step"]
    assert [(step["model_name"], step["model_version"]) for step in steps] == [("scale", 2), ("add-sub", 1)]


def test_they_answer(url: str):
    numbers = list(range(16))
    assert outputs(url, "identity", tensor("INPUT0", "FP32", [1.5, 2.5])) == {"OUTPUT0": [1.5, 2.5]}
    assert outputs(url, "chain", tensor("INPUT0", "FP32", [1.5, 2.5])) == {"OUTPUT0": [1.5, 2.5]}
    assert outputs(url, "diamond", tensor("IN", "INT32", numbers)) == {
        "SUM": [3 * n for n in numbers],
        "DIFFERENCE": numbers,
    }

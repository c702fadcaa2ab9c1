"""`argosy serve` as SageMaker uses it for multi-model endpoints: models of archives that it has unpacked."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from tests.serve.conftest import AddModel, Start
from tests.serve.process import wait_until

ARCHIVES = Path("/opt/ml/models")
TARGET = "X-Amzn-SageMaker-Target-Model"
REQUEST = {"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [7]}]}
ENSEMBLE = """platform: "ensemble"
input [{ name: "X", data_type: TYPE_INT32, dims: [1] }]
output [{ name: "Y", data_type: TYPE_INT32, dims: [1] }]
ensemble_scheduling { step [{
  model_name: "step", model_version: -1, input_map { key: "X" value: "X" }, output_map { key: "Y" value: "Y" } }] }
"""
Unpack = Callable[..., str]


@pytest.fixture
def unpack() -> Iterator[Unpack]:
    """Yield a function that puts folders of models where SageMaker unpacks an archive, and returns its hash."""
    unpacked: list[Path] = []

    def put(*models: Path) -> str:
        folder = ARCHIVES / uuid4().hex
        try:
            folder.mkdir(parents=True)
        except PermissionError:
            pytest.skip(f"{ARCHIVES} cannot be written here")
        unpacked.append(folder)
        for model in models:
            shutil.copytree(model, folder / "model" / model.name)
        return folder.name

    yield put
    for folder in unpacked:
        shutil.rmtree(folder)


@pytest.mark.parametrize("namespaces", ["true", "false"])
def test_models_are_loaded_invoked_and_unloaded(
    serve: Start, add_model: AddModel, tmp_path: Path, unpack: Unpack, namespaces: str
) -> None:
    model = add_model("step", "y = x + 1")
    ensemble = tmp_path / "flow"
    (ensemble / "1").mkdir(parents=True)
    (ensemble / "config.pbtxt").write_text(f'name: "flow"\n{ENSEMBLE}')
    named = shutil.copytree(model, tmp_path / "other")
    config = named / "config.pbtxt"
    config.write_text(f'name: "other"\n{config.read_text()}')
    one, two = unpack(named), unpack(model, ensemble)
    (tmp_path / "empty").mkdir()
    flags = ["--allow-sagemaker=true", "--sagemaker-port=0", "--model-control-mode=explicit"]
    server = serve(*flags, f"--model-namespacing={namespaces}", repository=tmp_path / "empty").wait_until_ready()
    (port,) = re.findall(r"Started Sagemaker HTTPService at \S+:(\d+)", server.text)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        for key, target in ((one, "one.tar.gz"), (two, "two.tar.gz")):
            body = {"model_name": key, "url": f"{ARCHIVES}/{key}/model"}
            loaded = client.post("/models", json=body, headers={TARGET: target})
            assert (loaded.status_code, loaded.text) == (200, "")
            assert client.post("/models", json=body, headers={TARGET: target}).status_code == 409
            invoked = client.post(f"/models/{key}/invoke", json=REQUEST, headers={TARGET: target})
            assert invoked.json()["model_name"] == target
            assert invoked.json()["outputs"][0]["data"] == [8]
        entries = [{"modelName": key, "modelUrl": f"{ARCHIVES}/{key}/model"} for key in sorted((one, two))]
        assert client.get("/models").json() == {"models": entries}
        wrong = client.post(f"/models/{one}/invoke", json={"inputs": []}, headers={TARGET: "one.tar.gz"})
        assert wrong.status_code == 400
        assert {row["name"] for row in _index(server.ask)} == {"one.tar.gz", "two.tar.gz", "step"}
        for key in (one, two):
            assert client.delete(f"/models/{key}").status_code == 200
            assert client.get(f"/models/{key}").status_code == 404
        wait_until(lambda: _index(server.ask) == [], server.log)
        broken = client.post("/models", json={"model_name": "h", "url": f"{ARCHIVES}/{uuid4().hex}/model"})
        assert (broken.status_code, "repository not found" in broken.text) == (400, True)
        config = ARCHIVES / one / "model" / "other" / "config.pbtxt"
        config.write_text("what")
        body = {"model_name": one, "url": f"{ARCHIVES}/{one}/model"}
        assert client.post("/models", json=body).status_code == 400
        assert client.get("/models").json() == {"models": []}
        config.write_text(ENSEMBLE.replace('platform: "ensemble"', 'platform: "nothing"'))
        assert client.post("/models", json=body).status_code == 400


def test_models_are_registered_under_explicit_control_alone(serve: Start, add_model: AddModel, unpack: Unpack) -> None:
    key = unpack(add_model("echo"))
    server = serve("--allow-sagemaker=true", "--sagemaker-port=0").wait_until_ready()
    (port,) = re.findall(r"Started Sagemaker HTTPService at \S+:(\d+)", server.text)
    body = {"model_name": key, "url": f"{ARCHIVES}/{key}/model"}
    refused = httpx.post(f"http://127.0.0.1:{port}/models", json=body)
    message = "repository registration is not allowed if model control mode is not EXPLICIT"
    assert (refused.status_code, refused.json()) == (400, {"error": message})


def _index(ask: Callable[..., tuple[int, bytes]]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads(ask("/v2/repository/index", b"{}")[1])
    return rows

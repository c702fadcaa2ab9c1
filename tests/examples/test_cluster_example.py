"""examples/cluster: a cluster can apply it as it is; it is served from a stand-in of its hub."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import httpx
import onnx
import pytest
import yaml
from onnx import TensorProto, helper
from tests.acceptance.running import REAL, Starter, Workspace, free_ports
from tests.agent.sites import Site, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster"
DOCUMENTS = list(yaml.safe_load_all((EXAMPLE / "encoder.yaml").read_text()))
URI = DOCUMENTS[1]["spec"]["storageUri"]
REPOSITORY, _, REST = URI.removeprefix("hf://").partition("@")
COMMIT, _, PATH = REST.partition("/")
WIDTH = 384
REACHABLE_BY_PODS = ("s3://", "gs://", "az://", "abfss://", "hf://", "oci://", "pvc://", "https://")


def encoder() -> bytes:
    """Return a model with the encoder's tensors: each token's id times its mask, once for each of 384 columns."""
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", WIDTH])
    nodes = [
        helper.make_node("Mul", ["input_ids", "attention_mask"], ["masked"]),
        helper.make_node("Add", ["masked", "token_type_ids"], ["typed"]),
        helper.make_node("Cast", ["typed"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["numbers", "last"], ["column"]),
        helper.make_node("Tile", ["column", "times"], ["last_hidden_state"]),
    ]
    constants = [
        helper.make_tensor("last", TensorProto.INT64, [1], [2]),
        helper.make_tensor("times", TensorProto.INT64, [3], [1, 1, WIDTH]),
    ]
    graph = helper.make_graph(nodes, "encoder", inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Yield a hub with the repository of the example, at its commit."""
    body, others = encoder(), {"README.md": b"# Encoder", "onnx/model_qint8.onnx": b"another file"}
    with serving(Site()) as site:
        tree = []
        for path, content in {PATH: body, **others}.items():
            site.files[f"/{REPOSITORY}/resolve/{COMMIT}/{path}"] = content
            digest = hashlib.sha1(content).hexdigest()
            tree.append({"type": "file", "path": path, "size": len(content), "oid": digest})
        info = {"id": REPOSITORY, "modelId": REPOSITORY, "sha": COMMIT, "tags": [], "siblings": []}
        for path, answer in ((f"revision/{COMMIT}", info), (f"tree/{COMMIT}", tree)):
            headers = {"Content-Type": "application/json"}
            site.answers[f"/api/models/{REPOSITORY}/{path}"] = (200, headers, json.dumps(answer).encode())
        monkeypatch.setenv("HF_ENDPOINT", site.url)
        yield site


@pytest.fixture
def up(tmp_path: Path, hub: Site) -> Iterator[Starter]:
    workspace = Workspace(tmp_path)
    copytree(EXAMPLE, workspace.manifests)
    starter = Starter(workspace, free_ports(), REAL)
    yield starter
    starter.end()


def test_every_source_is_one_that_pods_reach() -> None:
    uris = [document["spec"]["storageUri"] for document in DOCUMENTS if document["kind"] == "InferenceModel"]
    assert uris
    assert [uri for uri in uris if not uri.startswith(REACHABLE_BY_PODS)] == []
    assert len(COMMIT) == 40


def test_it_is_served_from_a_hub_and_answers_the_request(up: Starter, hub: Site) -> None:
    run = up()
    run.until_ready("minilm", "encoders")
    body: dict[str, Any] = json.loads((EXAMPLE / "request.json").read_text())
    answer = httpx.post(f"{run.url}/v2/models/minilm/infer", json=body)
    assert answer.status_code == 200, answer.text
    (output,) = answer.json()["outputs"]
    assert (output["name"], output["shape"]) == ("last_hidden_state", [1, 4, WIDTH])
    assert output["data"][::WIDTH] == [101.0, 7592.0, 2088.0, 102.0]
    fetched = {path for path, _ in hub.requests if "/resolve/" in path}
    assert fetched == {f"/{REPOSITORY}/resolve/{COMMIT}/{PATH}"}

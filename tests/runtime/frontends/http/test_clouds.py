"""The ports of SageMaker and Vertex AI."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import numpy as np
import pytest
from tests.runtime.frontends.conftest import SECRET, FakePlane
from tests.runtime.frontends.http.asking import ECHO

from argosy_runtime.frontends.http.app import HttpOptions
from argosy_runtime.frontends.http.clouds import sagemaker, serving, vertex
from argosy_runtime.frontends.restrictions import Api

AMAZON = sagemaker.BINARY_TYPE
DATA = np.array([[1.5, 2]], np.float32)


def _binary(binary_type: str) -> tuple[bytes, dict[str, str]]:
    """Return a body with a binary tensor, and the headers that say so."""
    tensor = {"name": "IN", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return text + DATA.tobytes(), {"Content-Type": f"{binary_type}{len(text)}"}


def _outputs(reply: httpx.Response, binary_type: str) -> Any:
    length = int(reply.headers["content-type"].removeprefix(binary_type))
    assert "inference-header-content-length" not in reply.headers
    assert reply.content[length:] == DATA.tobytes()
    return json.loads(reply.content[:length])["outputs"]


@pytest.fixture
def plane() -> FakePlane:
    return FakePlane()


async def _client(listener: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{listener.port}") as client:
        yield client
    await listener.stop(0)


def _options(**more: Any) -> HttpOptions:
    return HttpOptions(host="127.0.0.1", **more)


@pytest.fixture
async def amazon(plane: FakePlane) -> AsyncIterator[httpx.AsyncClient]:
    requested = sagemaker.SageMakerOptions(port=0, model="echo")
    async for client in _client(await serving.serve_sagemaker(plane, _options(), requested)):
        yield client


@pytest.fixture
async def google(plane: FakePlane) -> AsyncIterator[httpx.AsyncClient]:
    requested = vertex.VertexAiOptions(port=0, predict_route="/predict", health_route="/health")
    async for client in _client(await serving.serve_vertex_ai(plane, _options(), requested)):
        yield client


async def test_sagemaker_pings_and_invokes(amazon: httpx.AsyncClient, plane: FakePlane) -> None:
    assert (await amazon.get("/ping")).status_code == 200
    reply = await amazon.post("/invocations", json=ECHO)
    assert reply.json()["outputs"][0]["data"] == [1.5, 2]
    body, headers = _binary(AMAZON)
    (output,) = _outputs(await amazon.post("/invocations", content=body, headers=headers), AMAZON)
    assert output["name"] == "OUT"
    plane.is_ready = False
    assert (await amazon.get("/ping")).status_code == 400


@pytest.mark.parametrize(
    ("content_type", "message"),
    [
        (f"{AMAZON}x", "Unable to parse inference header size, got: x"),
        (f"a{AMAZON}3", f"expect MIME type for binary data starts with '{AMAZON}', got: "),
        (f"{AMAZON}99999", "inference header size should be in range (0, "),
        (f"{AMAZON}99999999999", "Unable to parse Inference-Header-Content-Length, value is out of range"),
    ],
)  # fmt: skip
async def test_a_wrong_content_type_is_refused(amazon: httpx.AsyncClient, content_type: str, message: str) -> None:
    reply = await amazon.post("/invocations", content=b"{}", headers={"Content-Type": content_type})
    assert reply.status_code == 400
    assert reply.json()["error"].startswith(message)


async def test_other_paths_of_sagemaker(amazon: httpx.AsyncClient) -> None:
    assert (await amazon.get("/v2")).status_code == 400
    assert (await amazon.get("/invocations")).status_code == 405


async def test_restrictions_of_http_are_those_of_sagemaker(plane: FakePlane) -> None:
    options = _options(restricted={Api.INFERENCE: SECRET})
    requested = sagemaker.SageMakerOptions(port=0, model="text", kind="generate")
    async for client in _client(await serving.serve_sagemaker(plane, options, requested)):
        assert (await client.post("/invocations", json={"text": "a"})).status_code == 403
        opened = await client.post("/invocations", json={"text": "a"}, headers={SECRET.header: SECRET.value})
        assert opened.json()["OUT_text"] == "a"


async def test_vertex_ai_predicts_by_its_only_model(google: httpx.AsyncClient) -> None:
    assert (await google.get("/health")).status_code == 200
    reply = await google.post("/predict", json=ECHO)
    assert reply.json()["model_name"] == "echo"
    body, headers = _binary(vertex.BINARY_TYPE)
    (output,) = _outputs(await google.post("/predict", content=body, headers=headers), vertex.BINARY_TYPE)
    assert output["name"] == "OUT"
    assert (await google.get("/v2")).status_code == 400


@pytest.mark.parametrize("models", [[], ["a", "b"]])
async def test_vertex_ai_needs_one_model_or_a_name(
    google: httpx.AsyncClient, plane: FakePlane, models: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = (await plane.index(True)).__class__()
    for name in models:
        index.models.add(name=name, version="1", state="READY")

    async def some(ready_only: bool) -> Any:
        return index

    monkeypatch.setattr(plane, "index", some)
    reply = await google.post("/predict", json=ECHO)
    assert reply.status_code == 400
    assert reply.json()["error"].startswith("Expect the model repository contains only a single model")


async def test_vertex_ai_predicts_by_the_named_model(plane: FakePlane) -> None:
    requested = vertex.VertexAiOptions(port=0, predict_route="/predict", health_route="/health", model="any")
    async for client in _client(await serving.serve_vertex_ai(plane, _options(), requested)):
        reply = await client.post("/predict", json=ECHO)
        assert reply.json()["model_name"] == "any"
        assert plane.requests[0].model_name == "any"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("metrics", 200),
        ("v2", 200),
        ("v2/health/ready", 200),
        ("v2/models/stats", 200),
        ("v2/models/echo", 200),
        ("v2/models/echo/versions/1/config", 200),
        ("v2/models/nope", 404),
        ("v2/models/echo/infer", 200),
        ("v2/models/echo/generate", 400),
        ("v2/repository/index", 200),
        ("v2/repository/models/echo/load", 403),
        ("v2/repository/models/echo/unload", 403),
        ("v2/systemsharedmemory/status", 200),
        ("v2/systemsharedmemory/region/r/register", 403),
        ("v2/cudasharedmemory/unregister", 403),
        ("v2/logging", 400),
        ("v2/../v2/logging", 400),
    ],
)
async def test_vertex_ai_is_redirected_to_what_only_reads(
    google: httpx.AsyncClient, plane: FakePlane, path: str, status: int
) -> None:
    redirect = {"X-Vertex-Ai-Triton-Redirect": path}
    body = json.dumps(ECHO) if path.endswith("infer") else ""
    assert (await google.post("/predict", content=body, headers=redirect)).status_code == status
    assert (await google.get("/predict", headers=redirect)).status_code == 405
    assert plane.loaded == []
    assert plane.unloaded == []

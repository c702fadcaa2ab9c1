"""SageMaker's multi-model endpoints over a fake data plane."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.runtime.frontends.conftest import SECRET, FakePlane
from tests.runtime.frontends.http.asking import ECHO

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.http.app import HttpOptions
from argosy_runtime.frontends.http.clouds import archives, sagemaker, serving
from argosy_runtime.frontends.restrictions import Api

TARGET = "X-Amzn-SageMaker-Target-Model"


@pytest.fixture
def plane() -> FakePlane:
    return FakePlane()


@pytest.fixture
def restricted() -> dict[Api, Any]:
    return {}


@pytest.fixture
async def amazon(plane: FakePlane, tmp_path: Path, restricted: dict[Api, Any]) -> AsyncIterator[httpx.AsyncClient]:
    requested = sagemaker.SageMakerOptions(port=0, model="echo", archives=str(tmp_path))
    listener = await serving.serve_sagemaker(plane, HttpOptions(host="127.0.0.1", restricted=restricted), requested)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{listener.port}") as client:
        yield client
    await listener.stop(0)


def _archive(root: Path, key: str, *models: str) -> str:
    folder = root / key / "model"
    for model in models:
        (folder / model / "1").mkdir(parents=True)
    return str(folder)


async def _load(client: httpx.AsyncClient, key: str, url: str, target: str = "") -> httpx.Response:
    headers = {TARGET: target} if target else {}
    return await client.post("/models", json={"model_name": key, "url": url}, headers=headers)


async def test_a_model_is_loaded_listed_invoked_and_unloaded(
    amazon: httpx.AsyncClient, plane: FakePlane, tmp_path: Path
) -> None:
    url = _archive(tmp_path, "h1", "any_name")
    loaded = await _load(amazon, "h1", url, "echo")
    assert (loaded.status_code, loaded.content) == (200, b"")
    assert plane.registered == {Path(url): ("any_name", "echo")}
    assert plane.loaded == [("echo", None, {})]
    entry = {"modelName": "h1", "modelUrl": url}
    assert (await amazon.get("/models")).json() == {"models": [entry]}
    assert (await amazon.get("/models/h1")).json() == entry
    for headers in ({}, {TARGET: "echo"}):
        reply = await amazon.post("/models/h1/invoke", json=ECHO, headers=headers)
        assert reply.json()["outputs"][0]["data"] == [1.5, 2]
    assert (await amazon.delete("/models/h1")).status_code == 200
    assert plane.unloaded == [("echo", True)]
    assert plane.registered == {}
    assert (await amazon.get("/models")).json() == {"models": []}


async def test_a_model_at_the_root_of_its_archive(amazon: httpx.AsyncClient, plane: FakePlane, tmp_path: Path) -> None:
    url = _archive(tmp_path, "h1", "1")
    Path(url, "config.pbtxt").touch()  # noqa: ASYNC240
    assert (await _load(amazon, "h1", url)).status_code == 200
    assert plane.registered == {tmp_path / "h1": ("model", "h1")}


async def test_repeats_are_conflicts(amazon: httpx.AsyncClient, tmp_path: Path) -> None:
    url = _archive(tmp_path, "h1", "m")
    assert (await _load(amazon, "h1", url, "echo")).status_code == 200
    for key, path in (("h1", url), ("h2", url), ("h1", _archive(tmp_path, "h3", "m"))):
        reply = await _load(amazon, key, path, "echo")
        assert (reply.status_code, reply.json()["error"][-27:]) == (409, "has already been registered")


async def test_a_failed_load_leaves_nothing(amazon: httpx.AsyncClient, plane: FakePlane, tmp_path: Path) -> None:
    url = _archive(tmp_path, "h1", "m")
    for name, status in (("bad", 400), ("large", 507)):
        assert (await _load(amazon, "h1", url, name)).status_code == status
        assert plane.registered == {}
    assert (await amazon.get("/models/h1")).status_code == 404


async def test_an_invocation_has_the_statuses_of_sagemaker(
    amazon: httpx.AsyncClient, plane: FakePlane, tmp_path: Path
) -> None:
    await _load(amazon, "h1", _archive(tmp_path, "h1", "m"), "fails")
    request = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [1]}]}
    failed = await amazon.post("/models/h1/invoke", json=request)
    assert (failed.status_code, failed.json()) == (400, {"error": "the model broke"})
    unknown = await amazon.post("/models/h1/invoke", json=request, headers={TARGET: "a/versions/1"})
    assert (unknown.status_code, "unknown model" in unknown.json()["error"]) == (400, True)
    plane.failure = "Out of memory: no more"
    assert (await amazon.post("/models/h1/invoke", json=request)).status_code == 507


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/models/none", 404),
        ("DELETE", "/models/none", 404),
        ("DELETE", "/models", 404),
        ("POST", "/models/none/invoke", 404),
        ("PUT", "/models", 400),
        ("GET", "/models/a/b", 400),
        ("GET", "/modeling/a/b", 400),
    ],
)
async def test_what_is_not_there(amazon: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    reply = await amazon.request(method, path)
    assert (reply.status_code, reply.content) == (status, b"")


@pytest.mark.parametrize("restricted", [{Api.MODEL_REPOSITORY: SECRET}, {Api.INFERENCE: SECRET}])
async def test_restricted_groups_are_those_of_http(
    amazon: httpx.AsyncClient, tmp_path: Path, restricted: dict[Api, Any]
) -> None:
    controls = Api.MODEL_REPOSITORY in restricted
    secret = {SECRET.header: SECRET.value}
    for method, path, refused in (
        ("GET", "/models", controls),
        ("GET", "/models/h", controls),
        ("POST", "/models", controls),
        ("DELETE", "/models/h", controls),
        ("POST", "/models/h/invoke", not controls),
    ):
        assert ((await amazon.request(method, path)).status_code == 403) is refused
        assert (await amazon.request(method, path, headers=secret)).status_code != 403


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/etc",
        "{}",
        "{}/h",
        "{}/h/other",
        "{}/../model",
        "{}/h/model/..",
        "{}/h/model/a/b",
        "{}/h/modela",
        "{}/l/model",
    ],
)
async def test_other_paths_are_refused(amazon: httpx.AsyncClient, tmp_path: Path, url: str) -> None:
    (tmp_path / "l").mkdir()
    (tmp_path / "l" / "model").symlink_to("/etc")
    reply = await _load(amazon, "h", url.format(tmp_path))
    expected = f"expected a path of the form {tmp_path}/<hash>/model[/<subdir>]"
    assert reply.status_code == 400
    assert reply.json() == {"error": f"Invalid \"url\" '{url.format(tmp_path)}': {expected}"}


def test_the_model_of_an_archive(tmp_path: Path) -> None:
    root = str(tmp_path)
    url = _archive(tmp_path, "h", "a", "b", ".hidden")
    assert archives.find(url, root) == archives.Archive(Path(url), "b")
    Path(url, "a", "config.pbtxt").write_text('name: "x"\nplatform:  "ensemble"\n')
    assert archives.find(f"{url}/", root) == archives.Archive(Path(url), "a")
    Path(url, "b", "config.pbtxt").touch()
    assert archives.find(f"{url}/b", root) == archives.Archive(Path(url), "b")
    assert archives.find(f"{root}/none/model", root).folder == ""
    with pytest.raises(ServingError, match="expected a path of the form"):
        archives.find(f"{url}/b/1", root)

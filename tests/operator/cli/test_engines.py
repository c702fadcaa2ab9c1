"""`argosy engines`: what is retained, which models use it, and what is deleted."""

import json
import os
import time
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from tests.agent.engines.making import FILES, KEY, OTHER, manifest, open_at, write
from tests.peers.fixtures import s3
from tests.peers.s3 import S3
from typer.testing import CliRunner

from argosy.cli.engines import engines
from argosy.local.manifests.reading import read_manifests
from argosy.planning.builds.images import BuildImages
from argosy.planning.builds.requests import requests
from argosy_agent.contract.builds import AccuracyReport
from argosy_agent.engines.store import EngineStore

__all__ = ["s3"]

MODEL = {
    "apiVersion": "argosy.dev/v1alpha1",
    "kind": "InferenceModel",
    "metadata": {"name": "reader", "namespace": "text"},
    "spec": {
        "poolRef": {"name": "pool"},
        "modelFormat": {"name": "onnx"},
        "version": 3,
        "storageUri": "https://host/model",
        "inputs": [{"name": "x", "dataType": "TYPE_FP32", "dims": [4]}],
        "outputs": [{"name": "y", "dataType": "TYPE_FP32", "dims": [4]}],
        "engine": {"builder": "onnxruntime", "precision": "int8", "accuracy": {"skip": "a test"}},
    },
}
POOL = {
    "apiVersion": "argosy.dev/v1alpha1",
    "kind": "ServingPool",
    "metadata": {"name": "pool", "namespace": "text"},
    "spec": {},
}
DAY = 24 * 3600


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(engines, [str(argument) for argument in arguments])


@pytest.fixture
def store(tmp_path: Path) -> EngineStore:
    """Return a store with two engines of sixty days ago, and what a build left."""
    retained = open_at(f"file:{tmp_path}/engines", tmp_path)
    built = write(tmp_path / "built", FILES)
    for key in (KEY, OTHER):
        retained.publish(key, built, manifest(key))
    retained.add_accuracy(KEY, AccuracyReport("top1_agreement", 0.9931, True, 10, "sha256:1", "2026-01-03T00:00:00Z"))
    retained.save_phase("c" * 32, "convert", built)
    age(tmp_path)
    return retained


def age(folder: Path, days: int = 60) -> None:
    """Make all engines older."""
    then = time.time() - days * DAY
    for path in (folder / "engines").rglob("*"):
        os.utime(path, (then, then))


@pytest.fixture
def manifests(store: EngineStore, tmp_path: Path) -> Path:
    """Return a manifest of the pool, whose cache the store is, and of a model whose build requested an engine."""
    path = tmp_path / "fleet.yaml"
    pool = {**POOL, "spec": {"storage": {"engineCache": {"storageUri": store.uri}}}}
    path.write_text(yaml.safe_dump_all([pool, MODEL]))
    add_requests(store, path, KEY)
    age(tmp_path)
    return path


def add_requests(store: EngineStore, path: Path, key: str) -> None:
    """Add the requests of a model's build for an engine, as the operator does."""
    pool, model = sorted(read_manifests(path).resources, key=lambda item: item.kind, reverse=True)
    for request in requests(model, pool, "amd64", BuildImages("image:2")).values():  # type: ignore[arg-type]
        store.add_request(key, request)


def test_a_table_of_what_is_retained(manifests: Path) -> None:
    result = run("list", "-f", manifests)
    assert result.exit_code == 0, result.output
    (mine,) = (line for line in result.output.splitlines() if KEY[:12] in line)
    for word in ("onnxruntime", "int8", "amd64", "https://host/model", "top1_agreement 0.9931", "text/reader", "60d"):
        assert word in mine
    (other,) = (line for line in result.output.splitlines() if OTHER[:12] in line)
    assert "not measured" in other
    assert "reader" not in other
    assert "2 engines" in result.output
    assert "belong to builds that run or did not end" in result.output


def test_json_says_all(manifests: Path, store: EngineStore) -> None:
    result = {load["key"]: load for load in json.loads(run("list", "--store", store.uri, "-o", "json").stdout)}
    assert result.keys() == {KEY, OTHER}
    assert result[KEY]["digest"] == result[OTHER]["digest"]
    assert result[KEY]["accuracies"][0]["value"] == 0.9931
    assert result[KEY]["usedBy"] == []
    (mine,) = (item for item in yaml.safe_load(run("list", "-f", manifests, "-o", "yaml").stdout) if item["key"] == KEY)
    assert mine["usedBy"] == ["InferenceModel text/reader"]


def test_why_nothing_was_measured(manifests: Path, store: EngineStore) -> None:
    add_requests(store, manifests, OTHER)
    (other,) = (line for line in run("list", "-f", manifests).output.splitlines() if OTHER[:12] in line)
    assert "skipped: a test" in other


def test_a_broken_engine_is_shown(store: EngineStore, tmp_path: Path) -> None:
    next((tmp_path / "engines" / KEY).rglob("model.onnx")).unlink()
    result = run("list", "--store", store.uri)
    assert "model.onnx is missing" in result.output


def test_what_no_one_uses_goes(manifests: Path, store: EngineStore) -> None:
    would = run("gc", "-f", manifests, "--dry-run")
    assert would.exit_code == 0, would.output
    assert len(list(store.list())) == 2
    result = run("gc", "-f", manifests)
    assert result.output == would.output.replace("would remove", "removed").replace("would be removed", "removed")
    assert f"removed {OTHER}: onnxruntime int8 amd64" in result.output
    assert "no model uses it, and it was last requested 60d ago" in result.output
    assert f"removed {'c' * 32}/phases" in result.output
    assert "1 engine and 1 unfinished build, " in result.output
    assert [item.key for item in store.list()] == [KEY]
    assert "0 engines and 0 unfinished builds" in run("gc", "-f", manifests).output


def test_what_is_younger_stays(manifests: Path, store: EngineStore) -> None:
    assert "0 engines" in run("gc", "-f", manifests, "--older-than", "61d").output
    add_requests(store, manifests, OTHER)
    assert run("gc", "-f", manifests, "--older-than", "12h").exit_code == 0
    assert {item.key for item in store.list()} == {KEY, OTHER}


def test_a_bucket(s3: S3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1", "ENDPOINT_URL": s3.url}
    for name, value in values.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    s3.reset()
    s3.create_bucket("fleet")
    retained = open_at("s3://fleet", tmp_path)
    retained.publish(KEY, write(tmp_path / "built", FILES), manifest())
    (load,) = json.loads(run("list", "--store", "s3://fleet", "-o", "json").stdout)
    assert load["uri"] == f"s3://fleet/{KEY}/{load['attempt']}"
    (tmp_path / "model.yaml").write_text(yaml.safe_dump(MODEL))
    result = run("gc", "--store", "s3://fleet", "-f", tmp_path / "model.yaml", "--older-than", "0s")
    assert "1 engine and 0 unfinished builds" in result.output
    assert retained.keys() == []


@pytest.mark.parametrize(
    ("edit", "stays"),
    [
        ({"engine": {"builder": "onnxruntime", "precision": "int8", "accuracy": {"skip": "another reason"}}}, True),
        ({"engine": {"builder": "onnxruntime", "precision": "fp16"}}, False),
        ({"storageUri": "https://host/other"}, False),
        ({"inputs": [{"name": "x", "dataType": "TYPE_FP32", "dims": [5]}]}, False),
        ({"storage": {"secretName": "other"}}, True),
    ],
)
def test_what_makes_another_engine(manifests: Path, store: EngineStore, edit: dict[str, object], stays: bool) -> None:
    model = {**MODEL, "spec": {**MODEL["spec"], **edit}}  # type: ignore[dict-item]
    manifests.write_text(yaml.safe_dump(model))
    run("gc", "-f", manifests, "--store", store.uri)
    assert [item.key for item in store.list()] == ([KEY] if stays else [])


def test_what_a_status_names_stays(manifests: Path, store: EngineStore) -> None:
    engine = {"architecture": "amd64", "state": "Ready", "storageUri": f"{store.uri}/{OTHER}/{'0' * 16}"}
    served = {**MODEL, "status": {"engines": [engine]}}
    manifests.write_text(yaml.safe_dump(served))
    run("gc", "-f", manifests, "--store", store.uri)
    assert {item.key for item in store.list()} == {KEY, OTHER}


def test_without_models_engines_stay(store: EngineStore) -> None:
    result = run("gc", "--store", store.uri)
    assert result.exit_code == 0
    assert "it is unknown which engines are used, and intact ones stay" in result.output
    assert "0 engines and 1 unfinished build" in result.output
    assert {item.key for item in store.list()} == {KEY, OTHER}


def test_no_store(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(yaml.safe_dump(POOL))
    for arguments in (["list"], ["gc", "-f", str(tmp_path / "pool.yaml")]):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "name the store with --store, or give the ServingPool that has spec.storage.engineCache" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--store", "https://host/x"], "cannot be written to: spec.storage.engineCache.storageUri is one of"),
        (["list", "--store", "pvc://claim/engines"], "there are no claims outside a cluster"),
        (["gc", "--store", "file:/x", "--older-than", "soon"], "--older-than: 'soon' is no time span"),
        (["gc", "-f", "nothing.yaml", "--store", "file:/x"], "nothing.yaml: there is no such file or folder"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: list[str], words: str) -> None:
    result = run(*arguments, *(["--pvc-root", str(tmp_path / "none")] if "pvc:" in arguments[-1] else []))
    assert result.exit_code == 1
    assert words in result.output


def test_a_model_that_is_wrong_might_use_anything(store: EngineStore, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump({**MODEL, "spec": {}}))
    result = run("gc", "-f", tmp_path / "wrong.yaml", "--store", store.uri)
    assert result.exit_code == 1
    assert "poolRef" in result.output
    assert {item.key for item in store.list()} == {KEY, OTHER}

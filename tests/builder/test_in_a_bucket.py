"""A build as a Job runs it, model and engine cache in a real S3 server: built once, found again, mended, collected."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import pytest
from tests.peers.fixtures import s3
from tests.peers.s3 import S3
from typer.testing import CliRunner

from argosy.cli.engines import engines
from argosy.local.manifests.reading import read_manifests
from argosy.planning.builds.images import BuildImages
from argosy.planning.builds.requests import requests
from argosy_agent.cache.storage import Storage
from argosy_agent.contract.builddocuments import parse_report, request_text
from argosy_agent.contract.builds import BuildFailure, BuildReport, BuildState
from argosy_agent.engines.store import open_store
from argosy_agent.transfer.stores.settings import Settings

from .models import perceptron

__all__ = ["s3"]

MANIFESTS = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: pool}
spec: {storage: {engineCache: {storageUri: "s3://fleet/engines"}}}
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: reader}
spec:
  poolRef: {name: pool}
  modelFormat: {name: onnx}
  footprint: {device: CPU}
  version: 1
  storageUri: s3://fleet/models/reader
  inputs: [{name: x, dataType: TYPE_FP32, dims: [32]}]
  outputs: [{name: y, dataType: TYPE_FP32, dims: [8]}]
  engine: {builder: onnxruntime, precision: int8, accuracy: {skip: "only where it is kept is tested"}}
"""


@pytest.fixture
def bucket(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> S3:
    """Return a bucket with a model, and set the environment that a storage Secret would bring."""
    values = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1", "ENDPOINT_URL": s3.url}
    for name, value in values.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    s3.reset()
    s3.create_bucket("fleet")
    s3.put("fleet", "models/reader/model.onnx", perceptron(tmp_path / "model.onnx").read_bytes())
    return s3


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """Return the pool and the model."""
    path = tmp_path / "fleet.yaml"
    path.write_text(MANIFESTS)
    return path


@pytest.fixture
def build(bucket: S3, manifests: Path, tmp_path: Path) -> Callable[[str], BuildReport]:
    """Return a function that runs the builder in a workspace of its own, as a Pod has it."""

    def run(workspace: str) -> BuildReport:
        model, pool = sorted(read_manifests(manifests).resources, key=lambda resource: resource.kind)
        (request,) = requests(model, pool, "amd64", BuildImages("image:1")).values()
        (tmp_path / "request.json").write_text(request_text(request))
        report = tmp_path / f"{workspace}.json"
        command = [
            sys.executable,
            "-m",
            "argosy_builder",
            f"--request={tmp_path / 'request.json'}",
            "--allowed-folder=/",
        ]
        paths = [f"--workspace={tmp_path / workspace}", f"--report-file={report}"]
        subprocess.run([*command, *paths], env=os.environ, check=False, timeout=120, capture_output=True)
        return parse_report(report.read_text())

    return run


def test_built_once_reused_and_mended(build: Callable[[str], BuildReport], manifests: Path, tmp_path: Path) -> None:
    built = build("first")
    assert (built.state, built.cached, built.message) == (BuildState.READY, False, "")
    again = build("second")
    assert (again.state, again.cached, again.uri, again.digest) == (BuildState.READY, True, built.uri, built.digest)

    copy = Storage(tmp_path / "cache").fetch(built.uri, built.digest)
    session = onnxruntime.InferenceSession(str(next(copy.rglob("*.onnx"))))
    assert [tensor.name for tensor in session.get_inputs()] == ["x"]

    store = open_store("s3://fleet/engines", Settings.of_process(tmp_path), tmp_path)
    (stored,) = store.inventory()
    assert (stored.problem, stored.halves, len(stored.requests)) == ("", (), 1)
    listed = CliRunner().invoke(engines, ["list", "-f", str(manifests)]).output
    assert "default/reader" in listed
    gone = CliRunner().invoke(engines, ["gc", "-f", str(manifests), "--older-than", "0s"]).output
    assert "0 engines and 0 unfinished builds" in gone

    store._sink.replace(built.uri.removeprefix("s3://fleet/engines/") + f"/{next(copy.rglob('*.onnx')).name}", b"cut")
    mended = build("third")
    assert (mended.state, mended.cached) == (BuildState.READY, False)
    assert mended.uri != built.uri
    assert store.lookup(built.key) is not None


def test_a_bucket_that_is_not_there(build: Callable[[str], BuildReport], manifests: Path) -> None:
    manifests.write_text(MANIFESTS.replace("s3://fleet/engines", "s3://other/engines"))
    report = build("first")
    assert report.failure is BuildFailure.STORE_UNAVAILABLE
    assert "create the bucket, or correct spec.storage.engineCache.storageUri" in report.message
    assert not report.is_final

"""`argosy build`: what it builds, where it keeps it, how it ends, and what it refuses."""

import functools
import sys
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from argosy.cli.local import build as module
from argosy.local.builds import build as builds
from argosy.local.builds.runner import LocalBuilds

FAKE = Path(__file__).parents[1] / "local" / "builds" / "fake_builder.py"
MANIFEST = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: p}
spec: {}
"""
MODEL = """
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: NAME}
spec:
  poolRef: {name: p}
  modelFormat: {name: onnx}
  version: 1
  storageUri: file:model.onnx
  footprint: {device: CPU}
  ENGINE
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a pool, two models with engines and one without; builders are played."""
    monkeypatch.setattr(module, "LocalBuilds", functools.partial(LocalBuilds, program=(sys.executable, str(FAKE))))
    monkeypatch.setattr(builds, "BACKOFF_FIRST_S", 0.01)
    engines = {"a": "engine: {builder: onnxruntime}", "b": "engine: {builder: onnxruntime, timeout: 1h}", "plain": ""}
    models = [MODEL.replace("NAME", name).replace("ENGINE", engine) for name, engine in engines.items()]
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "all.yaml").write_text(MANIFEST + "".join(models))
    (manifests / "model.onnx").write_text("a model")
    return manifests


def run(folder: Path, *flags: str) -> Result:
    app = typer.Typer()
    app.command()(module.build)
    return CliRunner().invoke(app, ["-f", str(folder), "--state", str(folder.parent / "state"), *flags])


def test_all_engines_are_built_and_listed(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 0, result.output
    # both ask for one engine with the same files, so for one build
    assert "a, b" in result.stdout
    assert "Ready" in result.stdout
    assert (folder.parent / "state" / "engines" / "engine").is_dir()
    again = run(folder)
    assert (again.exit_code, "Cached" in again.stdout) == (0, True)


def test_one_model_alone(folder: Path) -> None:
    result = run(folder, "--model", "b")
    assert result.exit_code == 0
    assert "\nb " in result.stdout


def test_engines_are_retained_where_the_flag_says(folder: Path, tmp_path: Path) -> None:
    assert run(folder, "--store", str(tmp_path / "store")).exit_code == 0
    assert (tmp_path / "store" / "engine").is_dir()
    assert run(folder, "--store", (tmp_path / "other").as_uri()).exit_code == 0
    assert (tmp_path / "other" / "engine").is_dir()


def test_a_failure_is_exit_status_2_with_the_reason_and_the_way_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BUILDER", "fail")
    result = run(folder)
    assert result.exit_code == 2
    assert "(onnxruntime amd64): AccuracyTooLow: 0.5 is less than 0.9. Choose a finer" in result.stderr


def test_an_engine_for_gpus_cannot_be_built_where_there_are_none(folder: Path) -> None:
    manifest = folder / "all.yaml"
    text = manifest.read_text().replace("builder: onnxruntime, timeout", "builder: tensorrt, timeout")
    text = text.replace("spec: {}", "spec: {runtime: {name: triton}}")
    manifest.write_text(text.replace("footprint: {device: CPU}", ""))
    result = run(folder, "--model", "b")
    assert result.exit_code == 2
    assert "InferenceModel default/b: tensorrt compiles for GPUs" in result.stderr


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--model", "c"), "--model c: there is no such model with spec.engine; those with one: a, b"),
        (("--model", "plain"), "--model plain: there is no such model with spec.engine"),
        (("--store", "s3:/b"), "--store: "),
    ],
)
def test_what_is_wrong_is_refused_at_once(folder: Path, flags: tuple[str, ...], says: str) -> None:
    result = run(folder, *flags)
    assert (result.exit_code, says in result.stderr) == (1, True), result.output


def test_manifests_without_engines_have_nothing_to_build(folder: Path) -> None:
    (folder / "all.yaml").write_text(MANIFEST + MODEL.replace("NAME", "plain").replace("ENGINE", ""))
    result = run(folder)
    assert (result.exit_code, result.stderr) == (1, "no model has spec.engine, so there is nothing to build\n")


def test_manifests_that_are_wrong_build_nothing(folder: Path) -> None:
    manifest = folder / "all.yaml"
    manifest.write_text(manifest.read_text().replace("poolRef: {name: p}", "poolRef: {name: q}"))
    result = run(folder)
    assert result.exit_code == 1
    assert "spec.poolRef.name" in result.stderr

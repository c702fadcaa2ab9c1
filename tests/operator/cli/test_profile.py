"""`argosy profile`: bad input at once, a sweep of a real server up to the size that fails, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import typer
import yaml
from click.testing import Result
from typer.testing import CliRunner

from argosy.cli.profile.profile import profile

MODEL = """
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: fussy}
spec:
  poolRef: {name: p}
  modelFormat: {name: python}
  version: 1
  storageUri: file:fussy
  maxBatchSize: 8
  batching: {maxQueueDelayMicroseconds: 100}
  inputs: [{name: X, dataType: TYPE_FP32, dims: [-1]}]
  outputs: [{name: Y, dataType: TYPE_FP32, dims: [-1]}]
"""
OTHERS = """
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: chat}
spec: {poolRef: {name: p}, modelFormat: {name: vllm}, version: 1, storageUri: "file:chat"}
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: alone}
spec: {poolRef: {name: p}, modelFormat: {name: python}, version: 1, storageUri: "file:fussy", maxBatchSize: 0}
---
apiVersion: argosy.dev/v1alpha1
kind: Ensemble
metadata: {name: both}
spec:
  poolRef: {name: p}
  inputs: [{name: A, dataType: TYPE_FP32, dims: [-1]}]
  outputs: [{name: B, dataType: TYPE_FP32, dims: [-1]}]
  steps: [{model: fussy, inputs: {X: A}, outputs: {Y: B}}]
"""
CODE = """
import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.002)
        tensors = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        if any(len(tensor) > 2 for tensor in tensors):
            raise MemoryError("no memory for so many rows")
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", tensor)]) for tensor in tensors]
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "fussy").mkdir()
    (tmp_path / "fussy" / "model.py").write_text(CODE)
    (tmp_path / "models.yaml").write_text(MODEL)
    return tmp_path


def run(files: Path, *arguments: str) -> Result:
    app = typer.Typer()
    app.command()(profile)
    return CliRunner().invoke(app, [*arguments, "-f", str(files / "models.yaml")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fussy"], "--shape: input X has sizes that vary, [-1]; give those of a row, such as --shape X=128"),
        (["fussy", "--shape", "X"], "--shape: 'X' is no INPUT=SIZES"),
        (["fussy", "--shape", "X=0"], "--shape: 'X=0' is no INPUT=SIZES"),
        (["fussy", "--shape", "X=4", "--shape", "Z=4"], "--shape: there is no input Z; the inputs are X"),
        (["fussy", "--patch", "/"], "--patch /: is a folder; name a file in it"),
        (["fussy", "-b", "0"], "--batches: '0' is no list of numbers from 1"),
        (["fussy", "-i", "257"], "--instances: '257' is no list of numbers from 1 to 256"),
        (["fussy", "-i", "1,two"], "--instances: '1,two' is no list of numbers from 1"),
        (["fussy", "--latency-budget", "soon"], "--latency-budget: "),
        (["fussy", "--latency-budget", "0s"], "--latency-budget: must be more than 0s"),
        (["fussy", "--plot", "curve.pdf"], "--plot curve.pdf: must end with .png or .svg"),
        (["fussy", "--patch", "/nowhere/patch.yaml"], "--patch /nowhere/patch.yaml: there is no folder /nowhere"),
        (["other"], "MODEL: there is no model 'other' in the manifests; there are alone, chat, fussy"),
        (["both"], "MODEL: both is an ensemble, which executes no batches itself; profile its models"),
        (["chat"], "MODEL: chat generates text, token by token; measure it by argosy bench"),
        (["alone", "-b", "1,2"], "--batches: the model takes no batches (maxBatchSize: 0)"),
    ],
)
def test_bad_input_is_refused_before_anything_is_started(files: Path, arguments: list[str], message: str) -> None:
    (files / "models.yaml").write_text(MODEL + OTHERS)
    result = run(files, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "loading" not in result.stderr


def test_manifests_that_are_not_named_are_one_error() -> None:
    app = typer.Typer()
    app.command()(profile)
    result = CliRunner().invoke(app, ["fussy"])
    assert result.exit_code == 1
    assert result.stderr == "--filename: name the manifests, or measure in a cluster by --job\n"


def test_a_sweep_ends_at_the_size_that_fails_and_proposes_what_works(files: Path) -> None:
    written = files / "patch.yaml"
    result = run(
        files, "fussy", "--shape", "X=4", "--seconds", "0.05", "-i", "1,2", "-o", "json", "--patch", str(written)
    )
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert [(point["instances"], point["batch"]) for point in document["points"]] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert all(point["hostBytes"] > 2**20 and point["rowsPerSecond"] > 0 for point in document["points"])
    (failure,) = document["failures"]
    assert (failure["instances"], failure["batch"]) == (1, 4)
    assert failure["message"].endswith("MemoryError: no memory for so many rows")
    assert "with 1 instance, batches of 4 failed, and nothing larger was tried" in result.stderr
    patch = yaml.safe_load(written.read_text())
    assert patch["spec"]["instances"] == document["proposal"]["instances"]
    assert patch["metadata"] == {"name": "fussy", "namespace": "default"}


def test_a_budget_that_nothing_keeps_is_reported(files: Path) -> None:
    result = run(files, "fussy", "--shape", "X=4", "--seconds", "0.05", "-i", "1", "-b", "1", "--latency-budget", "3ms")
    assert result.exit_code == 2, result.output
    assert "--latency-budget: nothing keeps 3 ms: a request waits for the batch before it and its own" in result.stderr


def test_a_model_that_does_not_load_is_reported_with_its_error(files: Path) -> None:
    (files / "fussy" / "model.py").write_text("raise ValueError('it is broken')")
    result = run(files, "fussy", "--shape", "X=4")
    assert result.exit_code == 1
    assert "with 1 instance, the load failed, and nothing larger was tried" in result.stderr
    assert "it is broken" in result.stderr


def test_a_picture_that_would_be_a_folder_is_refused_before_anything_is_started(files: Path) -> None:
    (files / "curve.svg").mkdir()
    result = run(files, "fussy", "--shape", "X=4", "--plot", str(files / "curve.svg"))
    assert result.exit_code == 1
    assert f"--plot {files / 'curve.svg'}: is a folder; name a file in it" in result.stderr


def test_a_shape_of_no_input_is_reported_where_the_manifest_declares_none(files: Path) -> None:
    code = "    @staticmethod\n    def auto_complete_config(config):\n" + "".join(
        f"        config.add_{kind}({{'name': {name!r}, 'data_type': 'TYPE_FP32', 'dims': [4]}})\n"
        for kind, name in (("input", "X"), ("output", "Y"))
    )
    (files / "fussy" / "model.py").write_text(CODE + code + "        return config\n")
    (files / "models.yaml").write_text(MODEL[: MODEL.index("  inputs:")])
    result = run(files, "fussy", "--shape", "Z=4", "-i", "1", "-b", "1", "--seconds", "0.05")
    assert result.exit_code == 1
    assert "--shape: there is no input Z; the inputs are X" in result.stderr


@pytest.mark.parametrize("seconds", [0.2, 0.5, 1.0, 1.5, 2.5])
def test_an_interruption_at_any_time_leaves_no_traceback(files: Path, seconds: float) -> None:
    command = [sys.executable, "-m", "argosy.cli", "profile", "fussy", "-f", str(files / "models.yaml")]
    temporary = {**os.environ, "TMPDIR": str(files)}
    with subprocess.Popen(
        [*command, "--shape", "X=4", "--seconds", "60"], stderr=subprocess.PIPE, text=True, env=temporary
    ) as running:
        assert running.stderr is not None
        time.sleep(seconds)
        running.send_signal(signal.SIGINT)
        assert "Traceback" not in running.stderr.read()
    assert running.returncode in (130, -signal.SIGINT)
    assert not list(files.glob("argosy-profile-*"))


def test_an_interruption_leaves_nothing_running(files: Path) -> None:
    command = [sys.executable, "-m", "argosy.cli", "profile", "fussy", "-f", str(files / "models.yaml")]
    temporary = {**os.environ, "TMPDIR": str(files)}
    with subprocess.Popen(
        [*command, "--shape", "X=4", "--seconds", "60"], stderr=subprocess.PIPE, text=True, env=temporary
    ) as running:
        assert running.stderr is not None
        while "batches of 1" not in (line := running.stderr.readline()):
            assert line
        servers = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(signal.SIGINT)
        assert "interrupted" in running.stderr.read()
    assert running.returncode == 130
    assert servers
    assert not any(server.is_running() for server in servers)
    assert not list(files.glob("argosy-profile-*"))

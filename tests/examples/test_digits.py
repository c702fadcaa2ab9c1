"""The example with an engine: `argosy up` builds it, serves it, and keeps it when the next one fails."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import psutil
import pytest
from onnx import numpy_helper
from tests.acceptance.running import REAL, Starter, Up, Workspace, environment, free_ports

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
PATIENCE_S = 240.0
"""A build starts some processes, each of which imports ONNX Runtime."""

Arrays = npt.NDArray[Any]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Starter]:
    """Yield a function that starts `argosy up` on a copy of the example."""
    workspace = Workspace(tmp_path)
    copytree(DIGITS, workspace.manifests)
    starter = Starter(workspace, free_ports(), REAL)
    yield starter
    starter.end()


@pytest.fixture
def scans() -> tuple[Arrays, Arrays]:
    """Return the held-out scans and their digits."""
    with np.load(DIGITS / "data" / "held-out.npz") as file:
        return file["image"], file["labels"]


def until(run: Up, what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (value := what()):
        assert run.process.poll() is None, run.output
        assert time.monotonic() < deadline, run.output
        time.sleep(0.1)
    return value


def until_ready(run: Up) -> dict[str, Any]:
    until(run, lambda: run.condition("digits").get("status") == "True" and run.statuses()["digits"].get("engines"))
    engine: dict[str, Any] = run.statuses()["digits"]["engines"][0]
    return engine


def edit(workspace: Workspace, before: str, after: str) -> None:
    manifest = workspace.manifests / "models.yaml"
    text = manifest.read_text()
    assert before in text
    manifest.write_text(text.replace(before, after))


def scores(run: Up, images: Arrays) -> Arrays:
    """Return the served model's answers, 64 scans at a time."""
    parts = []
    for start in range(0, len(images), 64):
        part = images[start : start + 64]
        tensor = {"name": "image", "datatype": "FP32", "shape": list(part.shape), "data": part.ravel().tolist()}
        answer = httpx.post(f"{run.url}/v2/models/digits/infer", json={"inputs": [tensor]}, timeout=30)
        assert answer.status_code == 200, answer.text
        parts.append(np.array(answer.json()["outputs"][0]["data"]).reshape(-1, 10))
    return np.concatenate(parts)


def builders(workspace: Workspace) -> list[psutil.Process]:
    folder = str(workspace.state / "builds")
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if folder in " ".join(process.info["cmdline"] or ()) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def test_an_int8_engine_is_built_and_served_and_outlives_a_worse_one(up: Starter, scans: tuple[Arrays, Arrays]) -> None:
    images, labels = scans
    run = up()
    engine = until_ready(run)
    session = onnxruntime.InferenceSession(DIGITS / "models" / "digits.onnx", providers=["CPUExecutionProvider"])
    (exact,) = session.run(None, {"image": images})
    served = scores(run, images)
    right = [float((answer.argmax(1) == labels).mean()) for answer in (exact, served)]
    assert engine["accuracy"]["samples"] == len(labels)
    assert engine["accuracy"]["value"] == pytest.approx(right[0] - right[1], abs=1e-6)
    assert engine["accuracy"]["value"] <= 0.01
    assert not np.array_equal(exact, served)  # it is int8 that answers
    assert engine["size"] < (DIGITS / "models" / "digits.onnx").stat().st_size / 2

    edit(up.workspace, "max: 0.01", "max: -0.5")  # nothing is that much better than fp32
    until(run, lambda: run.condition("digits", "Stalled").get("status") == "True")
    assert run.condition("digits", "AccuracyVerified")["status"] == "False"
    assert "AccuracyTooLow" in run.condition("digits", "Stalled")["message"]
    assert np.array_equal(scores(run, images), served)
    assert run.end(signal.SIGINT) == 0
    assert not builders(up.workspace)

    edit(up.workspace, "max: -0.5", "max: 0.01")
    again = up()
    assert until_ready(again)["key"] == engine["key"]
    assert "calibrate" not in again.output  # the engine is kept: nothing is built
    assert np.array_equal(scores(again, images), served)


def test_ctrl_c_ends_a_build_and_leaves_nothing_half_written(up: Starter) -> None:
    run = up()
    until(run, lambda: builders(up.workspace))
    assert run.end(signal.SIGINT) == 0
    assert not builders(up.workspace)
    assert not list(up.workspace.state.rglob("*.partial"))
    assert not list((up.workspace.state / "engines").rglob("manifest.json"))


def test_a_changed_model_is_rebuilt_while_its_engine_serves(up: Starter, scans: tuple[Arrays, Arrays]) -> None:
    images, _ = scans
    run = up()
    key = until_ready(run)["key"]
    before = scores(run, images[:64])
    path = up.workspace.manifests / "models" / "digits.onnx"
    model = onnx.load(path)
    (bias,) = (tensor for tensor in model.graph.initializer if tensor.name == "bias2")
    bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) + 1, "bias2"))
    temporary = path.with_name(".digits.onnx")
    onnx.save(model, temporary)
    temporary.replace(path)
    answers: list[Arrays] = []

    def is_rebuilt() -> bool:
        answers.append(scores(run, images[:64]))
        (engine,) = run.statuses()["digits"]["engines"]
        return bool(engine["key"] not in ("", key) and run.condition("digits").get("status") == "True")

    until(run, is_rebuilt)
    after = scores(run, images[:64])
    assert np.array_equal(answers[0], before)
    assert all(np.array_equal(answer, before) or np.array_equal(answer, after) for answer in answers)
    assert np.allclose(after, before + 1, atol=0.5)


def test_a_build_goes_on_after_argosy_up_was_killed(up: Starter) -> None:
    run = up()
    (left,) = until(run, lambda: builders(up.workspace)[:1])
    run.process.kill()
    run.process.wait()
    again = up()
    until_ready(again)
    assert not left.is_running()
    assert not builders(up.workspace)


def test_the_network_is_what_the_script_trains(tmp_path: Path) -> None:
    command = [sys.executable, str(DIGITS / "train.py"), "--epochs", "3", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    accuracy = float(done.stdout.rsplit(maxsplit=1)[1])
    assert accuracy > 0.85
    sessions = [
        onnxruntime.InferenceSession(folder / "models" / "digits.onnx", providers=["CPUExecutionProvider"])
        for folder in (tmp_path, DIGITS)
    ]
    shapes = [[(tensor.name, tensor.type, tensor.shape) for tensor in session.get_inputs()] for session in sessions]
    assert shapes[0] == shapes[1]
    for name in ("calibration", "held-out"):
        with np.load(tmp_path / "data" / f"{name}.npz") as ours, np.load(DIGITS / "data" / f"{name}.npz") as committed:
            assert {key: ours[key].tolist() for key in ours} == {key: committed[key].tolist() for key in committed}


def test_argosy_build_makes_the_same_engine_and_serves_nothing(up: Starter) -> None:
    flags = ["-f", str(up.workspace.manifests), f"--state={up.workspace.state}"]
    command = [sys.executable, "-m", "argosy.cli", "build", *flags]
    first = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment())
    assert first.returncode == 0, first.stdout + first.stderr
    assert "accuracy_drop" in first.stdout
    assert "of 599 samples" in first.stdout
    (report,) = (up.workspace.state / "builds").glob("*/report.json")
    assert json.loads(report.read_text())["accuracy"]["passed"]
    again = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment())
    assert again.returncode == 0, again.stdout + again.stderr
    assert "Cached" in again.stdout
    assert "calibrate" not in again.stdout

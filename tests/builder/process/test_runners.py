"""Runners in processes of their own: they answer, and however one ends is told."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.builder.models import CLASSES, FEATURES, perceptron

from argosy_agent.contract.builds import BuildFailure, BuildRequest, DataSource
from argosy_builder import registry
from argosy_builder.contract import BuildError
from argosy_builder.process import isolated, runners

REQUEST = BuildRequest("onnxruntime", "amd64", "image", "file:///store", DataSource("file:///model"))


def test_it_answers_and_its_crash_is_reported(tmp_path: Path) -> None:
    perceptron(tmp_path / "model.onnx")
    x = np.ones((3, FEATURES), np.float32)

    with isolated("onnxruntime", tmp_path, REQUEST, "the engine") as runner:
        assert runner.run({"x": x})["y"].shape == (3, CLASSES)
        assert not hasattr(runner, "log_likelihood")
        os.kill(runner._child.pid, signal.SIGSEGV)  # type: ignore[attr-defined]
        with pytest.raises(BuildError, match=r"the engine crashed \(SIGSEGV\)") as raised:
            runner.run({"x": x})

    assert raised.value.failure is BuildFailure.CRASHED


def test_a_sample_that_does_not_fit_names_the_data(tmp_path: Path) -> None:
    perceptron(tmp_path / "model.onnx")

    with (
        pytest.raises(BuildError, match=r"spec\.engine\.accuracy\.dataUri") as raised,
        isolated("onnxruntime", tmp_path, REQUEST, "the engine") as runner,
    ):
        runner.run({"x": np.ones((3, 5), np.float32)})

    assert raised.value.failure is BuildFailure.ACCURACY_DATA_INVALID


def test_what_cannot_be_opened_is_reported_as_the_builder_says_it(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as raised, isolated("onnxruntime", tmp_path, REQUEST, "the engine"):
        pass

    assert raised.value.failure is BuildFailure.MODEL_INVALID


class _Reader:
    """A language model, played: `connection` ends after two requests."""

    def run(self, inputs: object) -> dict[str, object]:
        return {}

    def log_likelihood(self, text: str) -> tuple[float, int]:
        return -2.0 * len(text), len(text)


class _Connection:
    def __init__(self, requests: list[object]) -> None:
        self.requests, self.sent = requests, list[object]()

    def recv(self) -> object:
        if not self.requests:
            raise EOFError
        return self.requests.pop(0)

    def send(self, value: object) -> None:
        self.sent.append(value)


def test_a_language_model_reads_texts_at_the_far_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext

    class Builder:
        def runner(self, folder: Path, request: BuildRequest) -> object:
            return nullcontext(_Reader())

    monkeypatch.setattr(registry, "resolve", lambda name: Builder())
    monkeypatch.setattr(runners, "die_with_parent", lambda: None)
    connection = _Connection([("log_likelihood", "abc"), ("run", {})])

    runners._serve(connection, "any", Path(), REQUEST)  # type: ignore[arg-type]

    assert connection.sent == [True, (-6.0, 3), {}]

"""A repository of small models, and `argosy serve` on it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.serve import process

MODEL = """
import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        {initialize}

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        x = int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()[0])
        {execute}
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([y], np.int32))])
"""
CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""
SPEAKER = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.version = args["model_version"]

    def execute(self, requests):
        answer = pb_utils.Tensor("ANSWER", np.array([self.version.encode()], object))
        return [pb_utils.InferenceResponse([answer]) for _ in requests]
"""
"""A model that answers with its version."""


class Start(Protocol):
    """Starts `argosy serve` on the repository; what is left of it is killed after the test."""

    def __call__(self, *flags: str, repository: Path = ..., **ports: int) -> process.Serving: ...


AddModel = Callable[..., Path]


@pytest.fixture
def add_model(tmp_path: Path) -> AddModel:
    """Return `add_model(name, execute, initialize)`: a model that takes X, an int, and answers Y, both INT32 [1]."""

    def add(name: str, execute: str = "y = x", initialize: str = "pass") -> Path:
        folder = tmp_path / "models" / name
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.py").write_text(MODEL.format(execute=execute, initialize=initialize))
        (folder / "config.pbtxt").write_text(CONFIG)
        return folder

    (tmp_path / "models").mkdir()
    return add


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts `argosy serve`."""
    started: list[process.Serving] = []

    def start(*flags: str, repository: Path = tmp_path / "models", **ports: int) -> process.Serving:
        serving = process.start(repository, tmp_path / f"server-{len(started)}.log", *flags, **ports)
        started.append(serving)
        return serving

    yield start
    for serving in started:
        serving.end()

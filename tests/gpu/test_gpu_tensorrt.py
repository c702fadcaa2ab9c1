"""Plans on a real GPU, by the real library: built by the builder, served by the backend."""

import importlib.util
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.runtime.backends.fake_device import count_transfers
from tests.runtime.backends.plans import FLOAT, info, model, node
from tests.runtime.service.conftest import Repository, infer

from argosy_builder.process import call
from argosy_builder.tensorrt.settings import Settings
from argosy_runtime.backends.devices.cuda import compute_capability
from argosy_runtime.dataplane import DataPlane
from argosy_runtime.messages import InferRequest, Tensor

CONFIG = 'name: "m" backend: "tensorrt" instance_group [ { kind: KIND_GPU count: 2 } ] '
Plane = Callable[[], Awaitable[DataPlane]]


@pytest.fixture(autouse=True)
def library() -> None:
    """Skip the test where TensorRT is missing."""
    if importlib.util.find_spec("tensorrt") is None:
        pytest.skip("TensorRT is not installed: pip install 'argosy[tensorrt]'")


def built(folder: Path, of: onnx.ModelProto, **more: Any) -> bytes:
    """Return the plan of a model, built in a process of its own."""
    onnx.save(of, folder / "model.onnx")
    arguments = {
        "source": str(folder / "model.onnx"),
        "target": str(folder),
        "settings": Settings(**more).arguments(),
        "architecture": compute_capability(0),
        "inputs": [("X", "TYPE_FP32", [64])],
        "max_batch_size": 8,
        "batch_sizes": [],
        "data": "",
        "samples": 0,
        "timings": str(folder / "timing.cache"),
    }
    call("argosy_builder.tensorrt.building:build", arguments, lambda percent, line: print(percent, line))
    return (folder / "model.plan").read_bytes()


def doubling() -> onnx.ModelProto:
    return model([node("Add", ["X", "X"], ["Y"])], [info("X", FLOAT, "b", 64)], [info("Y", FLOAT, "b", 64)])


def ask(batch: int) -> tuple[InferRequest, np.ndarray]:
    values = np.random.default_rng(batch).standard_normal((batch, 64), np.float32)
    return InferRequest("m", {"X": Tensor("X", "FP32", values)}), values * 2


@pytest.mark.parametrize("graphs", ["", "optimization { cuda { graphs: true } }"], ids=["plain", "graphs"])
async def test_a_built_plan_serves(repository: Repository, plane: Plane, tmp_path: Path, graphs: str) -> None:
    repository.write("m", {"1/model.plan": built(tmp_path, doubling())}, CONFIG + graphs)
    running = await plane()
    await running.load("m", None, {})
    for batch in (1, 3, 8, 8, 1):
        request, expected = ask(batch)
        with count_transfers() as counts:
            response = await infer(running, request)
        np.testing.assert_allclose(response.outputs[0].array, expected, rtol=1e-6)
        assert (counts.to_device, counts.to_host) == (1, 1)
    assert (tmp_path / "timing.cache").stat().st_size > 0


async def test_sizes_of_outputs_that_the_data_decides(repository: Repository, plane: Plane, tmp_path: Path) -> None:
    of = model([node("NonZero", ["X"], ["Y"])], [info("X", FLOAT, "b", 64)], [info("Y", 7, 2, None)])
    config = CONFIG + 'input [ { name: "X" data_type: TYPE_FP32 dims: [ -1, 64 ] } ]'
    repository.write("m", {"1/model.plan": built(tmp_path, of)}, config)
    running = await plane()
    await running.load("m", None, {})
    values = np.zeros((2, 64), np.float32)
    values[1, 5] = values[0, 7] = 1
    response = await infer(running, InferRequest("m", {"X": Tensor("X", "FP32", values)}))
    assert response.outputs[0].array.tolist() == [[0, 1], [7, 5]]

"""Settings of the command line that a backend reads while it completes a configuration."""

from pathlib import Path

import pytest
from onnx import TensorProto
from tests.runtime.backends.onnxruntime.graphs import graph

from argosy_runtime.repository.options import BackendSetting


def write_model(folder: Path, config: str = "") -> None:
    """Write a graph of rows of four, with or without a configuration."""
    (folder / "1").mkdir(parents=True)
    tensor = (TensorProto.FLOAT, ["N", 4])
    graph(folder / "1" / "model.onnx", [("Neg", ["X"], ["Y"])], {"X": tensor}, {"Y": tensor})
    if config:
        (folder / "config.pbtxt").write_text(config)


@pytest.mark.parametrize(
    ("flags", "size", "dims"),
    [
        ([], 4, [4]),
        (["onnxruntime,default-max-batch-size=16"], 16, [4]),
        (["onnxruntime,default-max-batch-size=0"], 0, [-1, 4]),
        (["default-max-batch-size=8"], 8, [4]),
        (["default-max-batch-size=8", "onnxruntime,default-max-batch-size=1"], 1, [4]),
        (["pytorch,default-max-batch-size=8"], 4, [4]),
    ],
)
async def test_a_model_without_a_batch_size_gets_the_default(repository, serve, flags, size, dims):
    write_model(repository.path / "m")
    plane = await serve(backend_settings=tuple(map(BackendSetting.parse, flags)))
    await plane.load("m", None, {})
    config = plane.model_config("m", "")
    assert (config.max_batch_size, list(config.input[0].dims)) == (size, dims)
    assert config.HasField("dynamic_batching") == (size > 1)
    assert "default-max-batch-size" not in config.parameters


async def test_a_model_s_own_batch_size_stays(repository, serve):
    write_model(repository.path / "m", "max_batch_size: 3")
    plane = await serve(backend_settings=(BackendSetting.parse("default-max-batch-size=8"),))
    await plane.load("m", None, {})
    assert plane.model_config("m", "").max_batch_size == 3

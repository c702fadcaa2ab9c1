"""A model file completes its configuration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from tests.runtime.backends.onnxruntime.graphs import ADD_SUB, OUT, add_sub, identity

from argosy_runtime.backends import onnxruntime as backend
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, Tensor


def completed(model_folder: Callable[[str], Any], pbtxt: str, save: Callable[[Path], None]) -> Any:
    folder = model_folder(pbtxt)
    save(folder.version_dir / "model.onnx")
    return backend.complete_config(folder.model_dir, folder.version_dir, folder.config)


def test_a_model_that_can_batch_is_completed(model_folder: Callable[[str], Any]) -> None:
    config = completed(model_folder, 'name: "m"', lambda path: add_sub(path, ["n", None, 3]))
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (4, True)
    assert [(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in config.input] == [
        ("A", 11, [-1, 3]),
        ("B", 11, [-1, 3]),
    ]
    assert [output.name for output in config.output] == ["SUM", "DIFF"]


def test_a_model_that_cannot_batch_is_completed(model_folder: Callable[[str], Any]) -> None:
    config = completed(model_folder, 'name: "m"', lambda path: add_sub(path, [2, 3]))
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (0, False)
    assert list(config.input[0].dims) == [2, 3]


def test_a_bare_batch_becomes_a_reshape_and_still_loads(
    model_folder: Callable[[str], Any], host: Any, responder: Any
) -> None:
    folder = model_folder('name: "m"')
    identity(folder.version_dir / "model.onnx", TensorProto.INT64, ["n"])
    config = backend.complete_config(folder.model_dir, folder.version_dir, folder.config)
    assert list(config.input[0].dims) == [1]
    assert config.input[0].HasField("reshape")
    request = InferRequest("m", {"A": Tensor("A", "INT64", np.array([4]))})
    backend.load(folder.spec(config), host).execute([request], responder)
    assert responder.only().outputs[0].array.tolist() == [4]


def test_what_is_set_stays(model_folder: Callable[[str], Any]) -> None:
    config = completed(model_folder, 'name: "m" max_batch_size: 1 ' + OUT % ("SUM", "TYPE_FP32", "[ -1 ]"), add_sub)
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (1, False)
    assert [output.name for output in config.output] == ["SUM"]
    full = completed(model_folder, ADD_SUB.replace('"m"', '"full"'), lambda path: None)
    assert not full.HasField("dynamic_batching")


def test_a_batch_size_the_model_cannot_have(model_folder: Callable[[str], Any]) -> None:
    with pytest.raises(ServingError, match="autofill failed for model 'm': model does not support batching"):
        completed(model_folder, 'name: "m" max_batch_size: 2', lambda path: add_sub(path, [2]))

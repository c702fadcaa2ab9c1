"""Files and groups that will not do, and contradictions between a file and its configuration."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.backends.onnxruntime.graphs import ADD_SUB, IO, add_sub, request
from tests.runtime.backends.requests import parameter

from argosy_runtime.backends import onnxruntime as backend
from argosy_runtime.errors import ErrorKind, ServingError


def test_a_missing_file_is_named(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(ADD_SUB)
    with pytest.raises(ServingError, match=r"unable to find '.*/m/1/model\.onnx' for model instance 'm_0'") as raised:
        backend.load(folder.spec(), host)
    assert raised.value.kind is ErrorKind.UNAVAILABLE


def test_a_corrupt_file_is_named(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(ADD_SUB)
    (folder.version_dir / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ServingError, match=r"onnx runtime error 7: Load model from .*model\.onnx failed"):
        backend.load(folder.spec(), host)


def test_a_folder_holds_the_model(model_folder: Callable[[str], Any], host: Any, responder: Any) -> None:
    folder = model_folder(ADD_SUB)
    add_sub(folder.version_dir / "model.onnx" / "model.onnx")
    instance = backend.load(folder.spec(), host)
    instance.execute([request(A=[[1]], B=[[1]])], responder)
    assert responder.only().error is None
    instance.close()


@pytest.mark.parametrize(
    ("find", "replace", "expected"),
    [
        (
            '"A" data_type: TYPE_FP32 dims: [ -1 ]',
            '"A" data_type: TYPE_FP32 dims: [ 2, 2 ]',
            (
                "model 'm', tensor 'A': the model expects 2 dimensions (shape [-1,-1]) but the model configuration "
                "specifies 3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit"
                " tensor shape, making complete shape [-1,2,2])"
            ),
        ),
        (
            '"A" data_type: TYPE_FP32',
            '"A" data_type: TYPE_INT32',
            (
                "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'A', "
                "model provides TYPE_FP32"
            ),
        ),
        (
            '"SUM" data_type: TYPE_FP32',
            '"SUM" data_type: TYPE_STRING',
            (
                "unable to load model 'm', configuration expects datatype TYPE_STRING for output 'SUM', "
                "model provides TYPE_FP32"
            ),
        ),
        ('"B"', '"C"', "unexpected inference input 'C', allowed inputs are: A, B"),
        ('"SUM"', '"S"', "unexpected inference output 'S', allowed outputs are: DIFF, SUM"),
        (
            "max_batch_size: 8",
            "max_batch_size: 0",
            (
                "model 'm', tensor 'A': the model expects 2 dimensions (shape [-1,-1]) but the model configuration "
                "specifies 1 dimensions (shape [-1])"
            ),
        ),
        (
            IO % ("B", "TYPE_FP32", "[ -1 ]"),
            "",
            "unable to load model 'm', configuration expects 1 inputs, model provides 2",
        ),
        (
            '"B" data_type: TYPE_FP32',
            '"B" allow_ragged_batch: true data_type: TYPE_FP32',
            (
                "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged "
                "input 'B', model provides [-1,-1]"
            ),
        ),
    ],
)
def test_a_contradiction_is_named(loaded: Any, find: str, replace: str, expected: str) -> None:
    with pytest.raises(ServingError) as raised:
        loaded(ADD_SUB.replace(find, replace), add_sub)
    assert raised.value.message == expected


def test_a_fixed_first_dimension_cannot_batch(loaded: Any) -> None:
    with pytest.raises(ServingError, match="the first dimension must be -1; but shape expected by the model is"):
        loaded(ADD_SUB, lambda path: add_sub(path, [1, 3]))


def test_a_gpu_without_its_provider_is_refused(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(ADD_SUB)
    add_sub(folder.version_dir / "model.onnx")
    with pytest.raises(ServingError, match="needs ONNX Runtime's CUDAExecutionProvider") as raised:
        backend.load(folder.spec(kind="KIND_GPU"), host)
    assert "onnxruntime-gpu" in raised.value.message


def test_a_model_that_gets_gpus_to_span_is_refused(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(ADD_SUB + parameter("gpu_device_ids", "0,1"))
    add_sub(folder.version_dir / "model.onnx")
    with pytest.raises(ServingError, match=r"cannot span GPUs 0, 1; give it an instance group of KIND_GPU"):
        backend.load(folder.spec(kind="KIND_MODEL"), host)
    backend.load(folder.spec(kind="KIND_CPU"), host).close()

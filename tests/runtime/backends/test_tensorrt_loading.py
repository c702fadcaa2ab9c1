"""Plans load with what their configuration must have and no more, on a stand-in of the library."""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import text_format
from tests.runtime.backends.plans import (
    CONFIG,
    HALF,
    PROFILES,
    SHAPE_META,
    WIDE,
    ask,
    backend,
    doubling,
    gpu,
    info,
    load,
    model,
    node,
    plan,
    ranges,
    refusal,
    reshaping,
    result,
    rows,
    trt,
)
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind

__all__ = ["backend", "gpu", "load", "trt"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: b"PK not a plan", "Magic tag does not match); 'model.plan' is no TensorRT plan: build one"),
        (
            lambda: plan(doubling(2), "10.13.3.9", **WIDE),
            "; 'model.plan' was built by TensorRT 10.13.3.9 and this server has 10.16.1.11: build it again",
        ),
        (
            lambda: plan(doubling(2), compute_capability="8.6", **WIDE),
            "got compute 8.6, please rebuild.); 'model.plan' was built for another kind of GPU: give each its own plan",
        ),
        (lambda: plan(doubling(2), host_code=True, **WIDE), "Cannot deserialize engine with lean runtime"),
    ],
)
def test_a_plan_that_does_not_fit_says_why_and_what_to_do(load: Any, content: Any, message: str) -> None:
    error = refusal(lambda: load(content()))
    assert error.kind is ErrorKind.INTERNAL
    assert error.message.startswith("unable to create TensorRT engine: ")
    assert message in error.message


def test_plans_of_another_version_of_tensorrt(load: Any, responder: Any) -> None:
    more = 'parameters { key: "VERSION_COMPATIBLE" value { string_value: "true" } }'
    instance = load(plan(doubling(2), "10.13.3.9", host_code=True, **WIDE), more=more)
    instance.execute([ask(rows([1, 2]))], responder)
    assert result(responder.only()) == [[2, 4]]


def test_a_plan_for_all_of_ampere_and_later(load: Any, responder: Any) -> None:
    instance = load(plan(doubling(2), compute_capability="8.0", compatibility="AMPERE_PLUS", **WIDE))
    instance.execute([ask(rows([1, 2]))], responder)
    assert result(responder.only()) == [[2, 4]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.output.pop(), "expected configuration for output 'Y' for m_0"),
        (lambda c: c.input.add(name="Z"), "configuration expects 2 inputs, model provides at most 1"),
        (lambda c: setattr(c.input[0], "name", "Q"), "unexpected inference input 'Q', allowed inputs are: X"),
        (lambda c: setattr(c.input[0], "data_type", 10), "unexpected datatype TYPE_FP32 for inference input 'X'"),
        (
            lambda c: c.input[0].dims.append(3),
            "the model expects 2 dimensions (shape [-1,2]) but the model configuration specifies 3 dimensions (an",
        ),
        (lambda c: setattr(c.input[0], "is_shape_tensor", True), "is incorrectly marked as a shape tensor"),
        (lambda c: setattr(c.input[0], "is_non_linear_format_io", True), "uses a linear IO format, but"),
    ],
)
def test_what_configuration_and_engine_must_agree_on(
    backend: Any, model_folder: Any, host: Any, change: Callable[[ModelConfig], None], message: str
) -> None:
    folder = model_folder(CONFIG.format(batch=8, dims="-1", group="", more=""))
    change(folder.config)
    (folder.version_dir / "model.plan").write_bytes(plan(doubling(2), **WIDE))
    assert message in refusal(lambda: backend.load(folder.spec(kind="KIND_GPU"), host)).message


def test_formats_that_are_not_linear_are_refused(load: Any) -> None:
    error = refusal(lambda: load(plan(doubling(2), formats={"X": "CHW32"}, **WIDE)))
    assert "uses a non-linear IO format, which this server does not lay out" in error.message


def test_only_gpus(backend: Any, model_folder: Any, host: Any) -> None:
    folder = model_folder(CONFIG.format(batch=8, dims="-1", group="", more=""))
    error = refusal(lambda: backend.load(folder.spec(kind="KIND_CPU"), host))
    assert error.message.startswith("unable to load model 'm', TensorRT backend supports only GPU device")


def test_a_file_that_is_not_there(backend: Any, model_folder: Any, host: Any) -> None:
    folder = model_folder(CONFIG.format(batch=8, dims="-1", group="", more=""))
    error = refusal(lambda: backend.load(folder.spec(kind="KIND_GPU"), host))
    assert error.message == f"unable to find '{folder.version_dir}/model.plan' for model instance 'm_0'"


def test_an_unknown_allocation_strategy(load: Any) -> None:
    more = 'parameters { key: "execution_context_allocation_strategy" value { string_value: "LAZY" } }'
    error = refusal(lambda: load(plan(doubling(2), **WIDE), more=more))
    assert error.message.startswith("Invalid value for 'execution_context_allocation_strategy': 'LAZY'")


def test_a_failed_load_leaves_nothing(load: Any, gpu: Any) -> None:
    refusal(lambda: load(b"no plan"))
    assert gpu.streams == {}
    assert gpu.live == {}


def complete(backend: Any, model_folder: Any, content: bytes, text: str) -> ModelConfig:
    folder = model_folder(f'name: "m" backend: "tensorrt" {text}')
    (folder.version_dir / "model.plan").write_bytes(content)
    result: ModelConfig = backend.complete_config(folder.model_dir, folder.version_dir, folder.config)
    return result


def test_everything_is_filled_in_from_the_plan(backend: Any, model_folder: Any, gpu: Any) -> None:
    result = complete(backend, model_folder, plan(doubling(2), **PROFILES), "")
    expected = """
    name: "m" backend: "tensorrt" max_batch_size: 2 dynamic_batching { }
    input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
    """
    assert result == text_format.Parse(expected, ModelConfig())
    assert gpu.streams == {}


@pytest.mark.parametrize(
    ("text", "batch"),
    [
        ('instance_group [ { profile: [ "1" ] } ]', 16),
        ('instance_group [ { profile: [ "0" ] }, { profile: [ "2" ] } ]', 8),
        ("max_batch_size: 1", 1),
        ('input [ { name: "X" dims: [ 2 ] } ]', 2),
        ('input [ { name: "X" dims: [ -1, 2 ] } ]', 0),
    ],
)
def test_the_largest_batch_of_the_profiles_in_use(backend: Any, model_folder: Any, text: str, batch: int) -> None:
    assert complete(backend, model_folder, plan(doubling(2), **PROFILES), text).max_batch_size == batch


def test_shape_tensors_and_scalars_are_filled_in(backend: Any, model_folder: Any) -> None:
    result = complete(backend, model_folder, plan(reshaping(), **SHAPE_META), "")
    assert [(item.name, list(item.dims), item.is_shape_tensor) for item in result.input] == [
        ("X", [4], False),
        ("S", [2], True),
    ]
    assert [(item.name, list(item.dims), item.is_shape_tensor) for item in result.output] == [
        ("Y", [-1, -1], False),
        ("T", [2], True),
    ]


def test_a_scalar_of_every_row_is_filled_in(backend: Any, model_folder: Any) -> None:
    flat = model([node("Add", ["X", "X"], ["Y"])], [info("X", HALF, "b")], [info("Y", HALF, "b")])
    result = complete(backend, model_folder, plan(flat, profiles=[ranges(1, 1, 4)]), "")
    assert list(result.input[0].dims) == [1]
    assert result.input[0].HasField("reshape")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_batch_size: 64", "configuration specified max-batch 64 but TensorRT engine only supports max-batch 2"),
        ('instance_group [ { profile: [ "5" ] } ]', "configuration specified invalid profile 5 . Number of profiles"),
        ('input [ { name: "X" dims: [ 2 ] } ] output [ { name: "Y" dims: [ -1, 2 ] } ]', "contradicting each other"),
        ("instance_group [ { kind: KIND_CPU } ]", "TensorRT backend supports only GPU device"),
    ],
)
def test_a_configuration_that_contradicts_the_plan(backend: Any, model_folder: Any, text: str, message: str) -> None:
    assert message in refusal(lambda: complete(backend, model_folder, plan(doubling(2), **PROFILES), text)).message


def test_a_plan_that_cannot_be_opened_for_completion(backend: Any, model_folder: Any) -> None:
    error = refusal(lambda: complete(backend, model_folder, plan(doubling(2), compute_capability="8.6"), ""))
    assert error.message.startswith("unable to load plan file to auto complete config: /")
    assert "got compute 8.6" in error.message
    assert "cc_model_filenames" in error.message


def test_a_type_that_no_configuration_can_say(backend: Any, model_folder: Any) -> None:
    error = refusal(lambda: complete(backend, model_folder, plan(doubling(2), types={"X": "FP8"}, **WIDE), ""))
    assert "input 'X' is of TensorRT's type FP8, which no model configuration can describe" in error.message

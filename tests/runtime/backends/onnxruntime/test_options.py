"""Options and accelerators of a configuration become those of a session."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.backends.onnxruntime.graphs import ADD_SUB, add_sub
from tests.runtime.backends.requests import parameter

from argosy_runtime.backends.onnxruntime import options
from argosy_runtime.errors import ServingError


def test_options_come_from_the_configuration(model_folder: Callable[[str], Any]) -> None:
    spec = {
        "intra_op_thread_count": "3",
        "inter_op_thread_count": "2",
        "execution_mode": "1",
        "enable_mem_arena": "false",
        "enable_mem_pattern": "0",
        "session.set_denormal_as_zero": "1",
        "memory.enable_memory_arena_shrinkage": "cpu:0",
    }
    pbtxt = ADD_SUB + "optimization { graph { level: -1 } }" + "".join(parameter(*item) for item in spec.items())
    config = model_folder(pbtxt).config
    made = options.session_options(config)
    assert (made.intra_op_num_threads, made.inter_op_num_threads) == (3, 2)
    assert made.execution_mode.name == "ORT_PARALLEL"
    assert (made.enable_cpu_mem_arena, made.enable_mem_pattern) == (False, False)
    assert made.graph_optimization_level.name == "ORT_ENABLE_BASIC"
    assert made.get_session_config_entry("session.set_denormal_as_zero") == "1"
    run = options.run_options(config)
    assert run is not None
    assert run.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("intra_op_thread_count", "many", "parameter 'intra_op_thread_count' is 'many', expected a whole number"),
        ("execution_mode", "2", "execution_mode are 0 or 1 but got 2"),
        ("enable_mem_arena", "perhaps", "parameter 'enable_mem_arena' is 'perhaps', expected true or false"),
    ],
)
def test_a_wrong_option_is_named(loaded: Any, key: str, value: str, expected: str) -> None:
    with pytest.raises(ServingError, match=expected):
        loaded(ADD_SUB + parameter(key, value), add_sub)


def test_accelerators_become_providers(model_folder: Callable[[str], Any]) -> None:
    config = model_folder(
        ADD_SUB
        + """optimization { execution_accelerators {
            gpu_execution_accelerator { name: "tensorrt"
                parameters { key: "precision_mode" value: "FP16" }
                parameters { key: "max_workspace_size_bytes" value: "9" } }
            gpu_execution_accelerator { name: "cuda" parameters { key: "use_tf32" value: "0" } }
            cpu_execution_accelerator { name: "openvino" } } }"""
        + parameter("arena_extend_strategy", "1")
    ).config
    result = dict(options.providers(config, "KIND_GPU", 2, stream=77))
    assert list(result) == [options.TENSORRT, options.CUDA, options.OPENVINO, options.CPU]
    assert result[options.TENSORRT] == {
        "device_id": "2",
        "user_compute_stream": "77",
        "trt_fp16_enable": "1",
        "trt_max_workspace_size": "9",
    }
    assert result[options.CUDA] == {
        "use_tf32": "0",
        "device_id": "2",
        "user_compute_stream": "77",
        "arena_extend_strategy": "kSameAsRequested",
    }
    assert [name for name, _ in options.providers(config, "KIND_CPU", 0)] == [options.OPENVINO, options.CPU]


@pytest.mark.parametrize(
    ("precision", "expected"), [("FP32", {}), ("BF16", {"trt_bf16_enable": "1"}), ("INT8", {"trt_int8_enable": "1"})]
)
def test_the_precisions_of_tensorrt(
    model_folder: Callable[[str], Any], precision: str, expected: dict[str, str]
) -> None:
    config = model_folder(
        ADD_SUB
        + f"""optimization {{ execution_accelerators {{ gpu_execution_accelerator {{ name: "tensorrt"
            parameters {{ key: "precision_mode" value: "{precision}" }} }} }} }}"""
    ).config
    assert dict(options.providers(config, "KIND_GPU", 1))[options.TENSORRT] == {"device_id": "1", **expected}


@pytest.mark.parametrize("value", ["0", "1"])
def test_where_initializers_are_allocated(model_folder: Callable[[str], Any], value: str) -> None:
    name = "session.use_device_allocator_for_initializers"
    config = model_folder(ADD_SUB + parameter(name, value)).config
    assert options.session_options(config).get_session_config_entry(name) == value


def test_an_unknown_accelerator_is_named(loaded: Any) -> None:
    accelerator = 'optimization { execution_accelerators { cpu_execution_accelerator { name: "fast" } } }'
    with pytest.raises(ServingError, match="unknown Execution Accelerator 'fast' is requested"):
        loaded(ADD_SUB + accelerator, add_sub)

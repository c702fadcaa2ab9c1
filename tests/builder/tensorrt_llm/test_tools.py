"""A tool that is missing, fails or crashes: its words become a reason and the way out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_builder.process.causes import explained
from argosy_builder.tensorrt_llm import BUILDER
from argosy_builder.tensorrt_llm.causes import CAUSES, OF_CALIBRATION

from .conftest import Standins, a_request, refused


def test_an_image_without_trtllm_build_says_what_to_do(
    checkpoint: Path, standins: Standins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    error = refused(checkpoint)
    assert error.failure is BuildFailure.BUILDER_MISSING
    assert "backend: pytorch" in error.message


def test_the_compiler_is_named_with_all_that_decides_the_files(standins: Standins) -> None:
    assert BUILDER.compiler() == "tensorrt_llm 1.2.1, tensorrt 10.14.1.48, nvidia-modelopt 0.37.0"


def test_without_tensorrt_llm_there_is_no_compiler() -> None:
    with pytest.raises(BuildError) as error:
        BUILDER.compiler()
    assert error.value.failure is BuildFailure.BUILDER_MISSING
    assert "engine.image" in error.value.message


FAILURES: list[tuple[str, str, BuildFailure, str]] = [
    (
        "from_hugging_face",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        BuildFailure.OUT_OF_GPU_MEMORY,
        "raise spec.parallelism",
    ),
    (
        "quantize_and_export",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        BuildFailure.OUT_OF_GPU_MEMORY,
        "lower calib_batch_size",
    ),
    (
        "quantize_and_export",
        "AssertionError: Cannot divide 2 kv_heads into 3 gpus",
        BuildFailure.INVALID_OPTIONS,
        "spec.parallelism: the model cannot be split so",
    ),
    (
        "trtllm-build",
        (
            "[TRT] [W] Skipping tactic 0x1 due to insufficient memory on requested size of 9.\n"
            "[TRT] [E] Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[x]}.)\n"
            "AssertionError: Engine building failed, please check the error log."
        ),
        BuildFailure.OUT_OF_GPU_MEMORY,
        "lower max_batch_size",
    ),
    (
        "trtllm-build",
        "[TRT] [E] Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[a...b]}.)",
        BuildFailure.UNSUPPORTED_MODEL,
        "set gpt_attention_plugin and gemm_plugin to auto",
    ),
    (
        "trtllm-build",
        "RuntimeError: INT8/INT4 quantization is not supported on SM>=100",
        BuildFailure.INVALID_OPTIONS,
        "spec.engine.precision: this GPU",
    ),
    ("trtllm-build", "ValueError: max_workers must be greater than 0", BuildFailure.BUILDER_MISSING, "sees no GPU"),
    (
        "trtllm-build",
        "trtllm-build: error: unrecognized arguments: --use_fused_mlp enable",
        BuildFailure.INVALID_OPTIONS,
        "spec.engine.options.use_fused_mlp: this release",
    ),
    (
        "trtllm-build",
        "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly",
        BuildFailure.OUT_OF_MEMORY,
        "raise engine.memory, or lower engine.options.workers",
    ),
    ("trtllm-build", "OSError: [Errno 28] No space left on device", BuildFailure.DISK_FULL, "disk"),
    (
        "from_hugging_face",
        "RuntimeError: Required but not provided tensors:{'transformer.layers.0.mlp.gate.weight'}",
        BuildFailure.MODEL_INVALID,
        "the checkpoint's weights are not what its config.json says",
    ),
    (
        "from_hugging_face",
        "NotImplementedError: The given huggingface model architecture FooForCausalLM is not supported in TRT-LLM yet",
        BuildFailure.UNSUPPORTED_MODEL,
        "backend: pytorch",
    ),
    (
        "quantize_and_export",
        "ModuleNotFoundError: No module named 'modelopt'",
        BuildFailure.BUILDER_MISSING,
        "lacks a part of TensorRT-LLM",
    ),
    ("quantize_and_export", "something unheard of", BuildFailure.BUILD_FAILED, "something unheard of"),
]


@pytest.mark.parametrize(("call", "words", "failure", "message"), FAILURES)
def test_a_tools_words_become_a_reason(call: str, words: str, failure: BuildFailure, message: str) -> None:
    causes = OF_CALIBRATION if call == "quantize_and_export" else CAUSES
    error = explained(call, 1, words.splitlines(), causes)
    assert error.failure is failure
    assert message in error.message


@pytest.mark.parametrize(("call", "words", "failure"), [(case[0], case[1], case[2]) for case in FAILURES[:3]])
def test_a_tool_that_fails_is_understood(
    call: str, words: str, failure: BuildFailure, standins: Standins, build: Callable[..., Path], texts: Path
) -> None:
    standins.fail(call, words)
    calibrated = call == "quantize_and_export"
    with pytest.raises(BuildError) as error:
        build(a_request(precision="fp8" if calibrated else "bf16"), texts if calibrated else None)
    assert error.value.failure is failure
    assert not [call for call in standins.calls if call["call"] == "trtllm-build"]


@pytest.mark.parametrize("call", ["from_hugging_face", "trtllm-build"])
def test_a_tool_that_crashes_is_identified_by_its_signal(
    call: str, standins: Standins, build: Callable[..., Path]
) -> None:
    standins.fail(call, "working", -11)
    with pytest.raises(BuildError) as error:
        build(a_request())
    assert error.value.failure is BuildFailure.CRASHED
    assert "SIGSEGV" in error.value.message

"""However a build of TensorRT-LLM goes wrong, it says which field it was and the way out."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy_agent.contract.builds import BuildFailure
from argosy_runtime.builder.contract import BuildError, BuildJob
from argosy_runtime.builder.process.causes import explained
from argosy_runtime.builder.tensorrt_llm import BUILDER
from argosy_runtime.builder.tensorrt_llm.causes import CAUSES, OF_CALIBRATION

from .conftest import TEXTS, Standins, a_request


def refused(model: Path, calibration: Path | None = None, **changes: Any) -> BuildError:
    """The error that is raised before any tool runs."""
    with pytest.raises(BuildError) as error:
        BUILDER.phases(BuildJob(a_request(**changes), model, calibration))
    return error.value


@pytest.fixture
def model(checkpoint: Path, tmp_path: Path) -> Path:
    """A checkpoint of one's own, to break."""
    folder = tmp_path / "model"
    shutil.copytree(checkpoint, folder)
    return folder


def rewrite(path: Path, **changes: Any) -> None:
    """Change fields of a JSON file; None removes one."""
    found = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in found.items() if value is not None}))


MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"tensor": 3}, "spec.parallelism.tensor: is 3, and the model's 4 attention heads are not divisible by it"),
    ({"pipeline": 3}, "spec.parallelism.pipeline: is 3, and the model has 2 layers"),
    (
        {"options": {"max_seq_len": 4096}},
        "options.max_seq_len: is 4096, and the model is made for 128 positions (max_position_embeddings)",
    ),
    ({"options": {"moe_ep_size": 2}, "tensor": 2}, "options.moe_ep_size: is 2, and the model has no experts"),
    ({"options": {"max_sequence_len": 8}}, "options.max_sequence_len: tensorrt_llm has no such option; do you mean"),
    ({"options": {"qformat": "int2"}}, "options.qformat: 'int2' is none of"),
    (
        {"options": {"backend": "pytorch", "qformat": "int8_sq"}},
        "options.qformat: int8_sq has no checkpoint that backend: pytorch reads",
    ),
]


@pytest.mark.parametrize(("changes", "said"), MISFITS)
def test_what_does_not_fit_the_model_is_refused_with_the_numbers(
    changes: dict[str, Any], said: str, checkpoint: Path, texts: Path, standins: Standins
) -> None:
    error = refused(checkpoint, texts, **changes)
    assert error.failure is BuildFailure.INVALID_OPTIONS
    assert said in error.message
    assert not standins.calls


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"architecture": "8.0", "precision": "fp8"}, "fp8 needs a GPU of compute capability 8.9 or more"),
        ({"architecture": "7.5"}, "the model needs a GPU of compute capability 8.0 or more, and this one has 7.5"),
        ({"architecture": "10.0", "precision": "int8", "options": {"qformat": "int8_wo"}}, "take fp8 or fp4"),
        ({"architecture": "amd64"}, "builds for GPUs, and the model is to run on amd64"),
    ],
)
def test_a_gpu_without_the_arithmetic_is_refused_at_once(
    changes: dict[str, Any], said: str, checkpoint: Path, texts: Path, standins: Standins
) -> None:
    error = refused(checkpoint, texts, **changes)
    assert error.failure is BuildFailure.INVALID_OPTIONS
    assert said in error.message


def test_blocks_of_awq_must_fit_into_each_gpus_rows(model: Path, texts: Path, standins: Standins) -> None:
    rewrite(model / "config.json", intermediate_size=320)
    error = refused(model, texts, precision="int4", tensor=2, options={"awq_block_size": 64})
    assert "intermediate_size 320 over parallelism.tensor 2 gives each GPU 160, no multiple of it" in error.message


def test_key_value_heads_are_shared_out_or_repeated(model: Path, standins: Standins) -> None:
    rewrite(model / "config.json", num_attention_heads=12, num_key_value_heads=4)
    assert "4 key-value heads can be neither shared out" in refused(model, tensor=6).message


def test_layers_of_a_quantized_checkpoint_divide(model: Path, texts: Path, standins: Standins) -> None:
    rewrite(model / "config.json", num_hidden_layers=3)
    assert "3 layers are not divisible by it" in refused(model, texts, precision="fp8", pipeline=2).message
    BUILDER.phases(BuildJob(a_request(pipeline=2), model))  # a converted one may be uneven


def test_a_checkpoint_is_quantized_once(model: Path, texts: Path, standins: Standins) -> None:
    rewrite(model / "config.json", quantization_config={"quant_method": "awq"})
    assert "quantized already (awq, config.json)" in refused(model, texts, precision="fp8").message
    BUILDER.phases(BuildJob(a_request(), model))
    rewrite(model / "config.json", quantization_config={"quant_method": "gptq", "desc_act": True})
    assert refused(model).failure is BuildFailure.UNSUPPORTED_MODEL


def test_an_architecture_without_engines_goes_the_other_way(model: Path, standins: Standins) -> None:
    rewrite(model / "config.json", architectures=["DeepseekV3ForCausalLM"])
    error = refused(model)
    assert error.failure is BuildFailure.UNSUPPORTED_MODEL
    assert "set engine.options.backend: pytorch" in error.message
    BUILDER.phases(BuildJob(a_request(options={"backend": "pytorch"}), model))


def cut_off(model: Path) -> str:
    """The weights end before they should."""
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    return "model.safetensors has"


def header_cut_off(model: Path) -> str:
    """Not even the header is whole."""
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    return "model.safetensors is no safetensors file, or cut off (50 bytes)"


def pointer(model: Path) -> str:
    """Git LFS left its pointer in place of the file."""
    (model / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n")
    return "is a pointer of Git LFS"


def broken_header(model: Path) -> str:
    """A header that is no JSON."""
    (model / "model.safetensors").write_bytes(struct.pack("<Q", 4) + b"nope" + b"x" * 20)
    return "has a header that cannot be read"


def missing_shard(model: Path) -> str:
    """The index names what is not there."""
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-00002-of-00002.safetensors"}}')
    return "model.safetensors.index.json names model-00002-of-00002.safetensors, which the model's files have not"


def broken_index(model: Path) -> str:
    """The index is cut off."""
    (model / "model.safetensors.index.json").write_text('{"weight_map": ')
    return "model.safetensors.index.json cannot be read"


def no_weights(model: Path) -> str:
    """There are none."""
    (model / "model.safetensors").unlink()
    return "there are no weights among the model's files"


def no_config(model: Path) -> str:
    """It is something else."""
    (model / "config.json").unlink()
    return "config.json is missing; a Hugging Face checkpoint has one, and here is"


def broken_config(model: Path) -> str:
    """config.json is cut off."""
    (model / "config.json").write_text('{"architectures": [')
    return "config.json cannot be read"


def no_architecture(model: Path) -> str:
    """It is no language model."""
    rewrite(model / "config.json", architectures=None)
    return "names no architectures"


BROKEN = (
    cut_off,
    header_cut_off,
    pointer,
    broken_header,
    missing_shard,
    broken_index,
    no_weights,
    no_config,
    broken_config,
    no_architecture,
)


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_checkpoint_is_told_before_anything_runs(
    damage: Callable[[Path], str], model: Path, standins: Standins
) -> None:
    said = damage(model)
    error = refused(model)
    assert error.failure is BuildFailure.MODEL_INVALID
    assert said in error.message
    assert not standins.calls


@pytest.mark.parametrize(
    ("lines", "samples", "failure", "said"),
    [
        (None, 0, BuildFailure.CALIBRATION_MISSING, "spec.engine.calibration: is required to quantize"),
        ([], 0, BuildFailure.CALIBRATION_INVALID, "spec.engine.calibration.dataUri"),
        ([{"tokens": [1, 2]}], 0, BuildFailure.CALIBRATION_INVALID, "holds no texts"),
        ([{"text": "  "}], 0, BuildFailure.CALIBRATION_INVALID, "holds empty texts alone"),
        (
            [{"text": each} for each in TEXTS],
            512,
            BuildFailure.CALIBRATION_INVALID,
            "holds 7 texts, and calibration.samples is 512",
        ),
    ],
)
def test_calibration_data_that_will_not_do_is_told_before_anything_runs(
    lines: list[Any] | None,
    samples: int,
    failure: BuildFailure,
    said: str,
    checkpoint: Path,
    tmp_path: Path,
    standins: Standins,
) -> None:
    folder = None
    if lines is not None:
        folder = tmp_path / "data"
        folder.mkdir()
        (folder / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    error = refused(checkpoint, folder, precision="fp8", calibration_samples=samples)
    assert error.failure is failure
    assert said in error.message


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


SAID: list[tuple[str, str, BuildFailure, str]] = [
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
    ("quantize_and_export", "something nobody knows", BuildFailure.BUILD_FAILED, "something nobody knows"),
]


@pytest.mark.parametrize(("call", "words", "failure", "said"), SAID)
def test_a_tools_words_become_a_reason(call: str, words: str, failure: BuildFailure, said: str) -> None:
    causes = OF_CALIBRATION if call == "quantize_and_export" else CAUSES
    error = explained(call, 1, words.splitlines(), causes)
    assert error.failure is failure
    assert said in error.message


@pytest.mark.parametrize(("call", "words", "failure"), [(each[0], each[1], each[2]) for each in SAID[:3]])
def test_a_tool_that_fails_is_understood(
    call: str, words: str, failure: BuildFailure, standins: Standins, build: Callable[..., Path], texts: Path
) -> None:
    standins.fail(call, words)
    calibrated = call == "quantize_and_export"
    with pytest.raises(BuildError) as error:
        build(a_request(precision="fp8" if calibrated else "bf16"), texts if calibrated else None)
    assert error.value.failure is failure
    assert not [each for each in standins.calls if each["call"] == "trtllm-build"]


@pytest.mark.parametrize("call", ["from_hugging_face", "trtllm-build"])
def test_a_tool_that_crashes_is_told_by_its_signal(call: str, standins: Standins, build: Callable[..., Path]) -> None:
    standins.fail(call, "working", -11)
    with pytest.raises(BuildError) as error:
        build(a_request())
    assert error.value.failure is BuildFailure.CRASHED
    assert "SIGSEGV" in error.value.message


def test_a_quantized_checkpoint_is_read_back(standins: Standins, build: Callable[..., Path], texts: Path) -> None:
    standins.change(**{"checkpoint:quantization.quant_algo": None})
    with pytest.raises(BuildError, match="quant_algo: asked FP8, and the checkpoint has nothing"):
        build(a_request(precision="fp8", options={"backend": "pytorch"}), texts)


def test_code_of_a_checkpoint_stays_out(model: Path, standins: Standins, build: Callable[..., Path]) -> None:
    (model / "modeling_own.py").write_text("raise SystemExit")
    rewrite(model / "config.json", auto_map={"AutoConfig": "modeling_own.Own"})
    build(a_request(), model=model)
    (call,) = [each for each in standins.calls if each["call"] == "from_hugging_face"]
    assert not call["code"]
    assert "modeling_own.py" not in call["files"]


def test_progress_only_grows_and_names_what_is_done(
    standins: Standins, build: Callable[..., Path], texts: Path
) -> None:
    build(a_request(precision="fp8", tensor=2), texts)
    lines = [line for _, line in standins.progress]
    assert "Calibrating batch 6" in lines
    assert "Total time of building all engines: 00:00:34" in lines
    built = [percent for percent, line in standins.progress[lines.index("Set PluginConfig.gemm_plugin to disable.") :]]
    assert built == sorted(built)
    assert built[-1] == 100
    assert (50, "Engine serialized. Total time: 00:00:01") in standins.progress


def test_nothing_is_left_in_the_temporary_folder(
    standins: Standins, build: Callable[..., Path], texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    folder = build(a_request(precision="fp8"), texts)
    assert not list(place.iterdir())
    assert not list(folder.rglob("model.cache"))

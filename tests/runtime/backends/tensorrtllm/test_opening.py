"""Which class opens which folder, with which arguments; what is refused, and what the message says to do."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import lora_files
from tests.runtime.backends.language_model import output

from argosy_runtime.backends import tensorrtllm as backend
from argosy_runtime.backends.engines.commands import AddAdapter, RemoveAdapter, Sleep
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language import is_language_model

from .conftest import HIDDEN, Load, pbtxt, write_checkpoint, write_engine
from .test_generating import tokens_request

Calls = Callable[[str], list[dict[str, Any]]]


def test_a_configuration_gets_the_tensors_of_language_models(model_folder: Any) -> None:
    folder = model_folder('name: "lm" backend: "tensorrtllm"')
    write_engine(folder.version_dir)
    completed = backend.complete_config(folder.model_dir, folder.version_dir, folder.config)
    assert is_language_model(completed)
    assert completed.model_transaction_policy.decoupled
    assert "tensorrt_llm" not in sys.modules
    assert not {tensor.name for tensor in completed.output} & {"prompt_logprobs"}


def test_without_a_tokenizer_there_is_no_text(model_folder: Any) -> None:
    folder = model_folder('name: "lm" backend: "tensorrtllm"')
    write_engine(folder.version_dir, tokenizer=False)
    completed = backend.complete_config(folder.model_dir, folder.version_dir, folder.config)
    assert not {tensor.name for tensor in completed.input} & {"text_input", "messages", "stop_words"}


OF_ENGINES = pbtxt(
    kv_cache_free_gpu_mem_fraction="0.5",
    max_tokens_in_paged_kv_cache="4096",
    max_attention_window_size="64,128",
    kv_cache_host_memory_bytes="1024",
    enable_kv_cache_reuse="false",
    kv_cache_memory="2GiB",
    enable_chunked_context="true",
    batch_scheduler_policy="max_utilization",
    normalize_log_probs="false",
    multi_block_mode="false",
    cuda_graph_mode="true",
    cuda_graph_cache_size="8",
    guided_decoding_backend="",
)


def test_an_engine_is_opened_with_the_parameters_of_nvidias_backend(load: Load, calls: Calls) -> None:
    load(config=OF_ENGINES)
    (call,) = calls("LLM")
    cache = call.pop("kv_cache_config")
    assert cache["free_gpu_memory_fraction"] == 0.5
    assert cache["max_tokens"] == 4096
    assert cache["max_attention_window"] == [64, 128]
    assert cache["host_cache_size"] == 1024
    assert cache["max_gpu_total_bytes"] == 2 << 30
    assert cache["enable_block_reuse"] is False
    assert call == {
        "call": "LLM",
        "engines": True,
        "tokenizer": "tokenizer",
        "enable_chunked_prefill": True,
        "scheduler_config": {
            "capacity_scheduler_policy": "MAX_UTILIZATION",
            "context_chunking_policy": None,
            "dynamic_batch_config": None,
        },
        "normalize_log_probs": False,
        "extended_runtime_perf_knob_config": {
            "multi_block_mode": False,
            "enable_context_fmha_fp32_acc": False,
            "cuda_graph_mode": True,
            "cuda_graph_cache_size": 8,
        },
    }


def test_lookahead_has_its_sizes_and_no_guided_decoding(load: Load, calls: Calls) -> None:
    sizes = {"lookahead_window_size": "7", "lookahead_ngram_size": "6", "lookahead_verification_set_size": "5"}
    load(config=pbtxt(decoding_mode="lookahead", **sizes), speculative_decoding_mode=8, max_draft_len=60)
    (call,) = calls("LLM")
    sizes_of_engine = {"max_window_size": 7, "max_ngram_size": 6, "max_verification_set_size": 5}
    assert call["speculative_config"] == sizes_of_engine
    assert "guided_decoding_backend" not in call


ARGUMENTS = """
backend: pytorch
tensor_parallel_size: 2
max_seq_len: 64
kv_cache_config: {dtype: fp8, free_gpu_memory_fraction: 0.8}
cuda_graph_config: null
"""


def test_a_checkpoint_is_opened_with_the_arguments_of_its_build(
    load: Load, calls: Calls, responder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = load(write_checkpoint, pbtxt(kv_cache_free_gpu_mem_fraction="0.5"), arguments=ARGUMENTS)
    (call,) = calls("LLM")
    assert call["tensor_parallel_size"] == 2
    assert call["cuda_graph_config"] is None
    assert call["enable_iter_perf_stats"] is True
    assert (call["kv_cache_config"]["dtype"], call["kv_cache_config"]["free_gpu_memory_fraction"]) == ("fp8", 0.5)
    assert "backend" not in call
    instance.execute([tokens_request(10, max_tokens=100)], responder)
    assert "maximum context length is 64 tokens" in responder.only(0).error.message


@pytest.mark.parametrize(
    ("kind", "parameters", "visible", "seen", "split"),
    [
        ("KIND_MODEL", {"gpu_device_ids": "1,2"}, "4,5,6", "5,6", 2),
        ("KIND_MODEL", {"gpu_device_ids": "1,2"}, "", "1,2", 2),
        ("KIND_GPU", {}, "GPU-a,GPU-b", "GPU-a", None),
        ("KIND_CPU", {}, "4,5", "4,5", None),
    ],
)
def test_the_process_sees_the_models_gpus(
    kind: str,
    parameters: dict[str, str],
    visible: str,
    seen: str,
    split: int | None,
    load: Load,
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import os

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    load(write_checkpoint, pbtxt(**parameters), kind=kind)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == seen
    assert calls("LLM")[0].get("tensor_parallel_size") == split


def refused(
    model_folder: Any, host: Any, write: Callable[..., None], config: str = pbtxt(), **files: Any
) -> ServingError:
    """Return the error with which a folder is not opened."""
    folder = model_folder(config)
    write(folder.version_dir, **files)
    with pytest.raises(ServingError) as error:
        backend.load(folder.spec(kind="KIND_MODEL" if "gpu_device_ids" in config else "KIND_CPU"), host)
    return error.value


def test_an_engine_of_another_release_names_both(model_folder: Any, host: Any, calls: Calls) -> None:
    error = refused(model_folder, host, write_engine, version="1.1.0")
    assert error.kind is ErrorKind.UNAVAILABLE
    assert (
        "was built by TensorRT-LLM 1.1.0, and only that release opens it; this environment has 1.2.1" in error.message
    )


def test_a_release_without_engines_names_the_one_that_has_them(
    model_folder: Any, host: Any, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt_llm._tensorrt_engine", None)
    error = refused(model_folder, host, write_engine)
    assert "opens no engines any more: install 1.2.1" in error.message
    assert "backend: pytorch" in error.message


def no_files(folder: Path) -> None:
    """Write nothing."""


def half_an_engine(folder: Path) -> None:
    """Write an engine of two parts, one of which is missing."""
    write_engine(folder)
    config = json.loads((folder / "config.json").read_text())
    config["pretrained_config"]["mapping"]["world_size"] = 2
    (folder / "config.json").write_text(json.dumps(config))


def engine_of_two(folder: Path) -> None:
    """Write an engine of two parts."""
    half_an_engine(folder)
    (folder / "rank1.engine").write_bytes(b"engine")


def no_json(folder: Path) -> None:
    """Write a configuration that breaks off."""
    (folder / "config.json").write_text("{")


REFUSED: list[tuple[Callable[..., None], str, dict[str, Any], str]] = [
    (no_files, pbtxt(), {}, "unable to find"),
    (no_json, pbtxt(), {}, "cannot be read"),
    (half_an_engine, pbtxt(), {}, "rank1.engine', one of 2 parts of its engine"),
    (
        engine_of_two,
        pbtxt(gpu_device_ids="0"),
        {},
        "its engine has 2 parts, one for each GPU, and the model has 1",
    ),
    (write_engine, pbtxt(batch_scheduler_policy="static"), {}, "expected max_utilization or guaranteed_no_evict"),
    (write_engine, pbtxt(decoding_mode="beam_search"), {}, "'decoding_mode' is 'beam_search'"),
    (write_engine, pbtxt(gpu_weights_percent="0.5"), {}, "is of NVIDIA's server alone"),
    (write_engine, pbtxt(kv_cache_memory="2 GB"), {}, "parameter 'kv_cache_memory' is '2 GB'"),
    (write_engine, pbtxt(guided_decoding_backend="outlines"), {}, "expected xgrammar or nothing"),
    (write_engine, pbtxt(guided_decoding_backend="xgrammar"), {"tokenizer": False}, "needs a tokenizer"),
    (write_checkpoint, pbtxt(), {"arguments": "- 1"}, "is no mapping of arguments"),
    (write_checkpoint, pbtxt(), {"arguments": "fast_build: true"}, "tensorrt_llm.LLM takes no 'fast_build' here"),
    (write_checkpoint, pbtxt(), {"arguments": "backend: tensorrt"}, "has another backend than pytorch"),
    (write_engine, pbtxt(adapters='[{"name": "a", "path": "a"}]'), {}, "its engine takes no adapters"),
    (write_checkpoint, pbtxt(adapters="{"), {}, "is not a JSON list of objects with 'name' and 'path'"),
]


@pytest.mark.parametrize(("write", "config", "files", "message"), REFUSED)
def test_what_cannot_be_opened_says_why(
    write: Callable[..., None],
    config: str,
    files: dict[str, Any],
    message: str,
    model_folder: Any,
    host: Any,
    calls: Calls,
) -> None:
    assert message in refused(model_folder, host, write, config, **files).message
    assert not calls("LLM")


def test_batches_are_the_engines_own(model_folder: Any, host: Any) -> None:
    assert (
        "max_batch_size must be 0" in refused(model_folder, host, write_engine, pbtxt() + " max_batch_size: 4").message
    )


ADAPTERS = pbtxt(adapters='[{"name": "one", "path": "one"}, {"name": "two", "path": "two"}]')


@pytest.mark.parametrize("engine", [True, False])
def test_adapters_are_chosen_by_requests(engine: bool, load: Load, responder: Any, calls: Calls) -> None:
    def write(folder: Path) -> None:
        plugins = {"plugin_config": {"lora_plugin": "auto"}, "lora_config": {"max_lora_rank": 16}}
        write_engine(folder, **plugins) if engine else write_checkpoint(folder)
        lora_files.write(folder / "one", 8)
        lora_files.write(folder / "two", 16)

    instance = load(write, ADAPTERS)
    for name in ("one", "two"):
        instance.manage(AddAdapter(name, str(instance._spec.version_dir / name)))
    requests = [tokens_request(10, max_tokens=1, lora_name=name) for name in ("two", "three")]
    instance.execute([*requests, tokens_request(10, max_tokens=1)], responder)
    responder.wait_for_final(0, 1, 2)
    assert output(responder.only(0)) == [12]
    assert responder.only(1).error.kind is ErrorKind.NOT_FOUND
    assert "has no adapter 'three'; it has one, two" in responder.only(1).error.message
    assert output(responder.only(2)) == [11]
    (call,) = calls("LLM")
    lora = call.get("lora_config")
    assert (lora is None) is engine
    if lora is not None:
        assert (lora["max_lora_rank"], lora["max_loras"], lora["max_cpu_loras"]) == (16, 4, 4)
        assert call["enable_lora"] is True


@pytest.mark.parametrize(
    ("write", "config", "files"),
    [
        (write_engine, pbtxt(), {"plugin_config": {"lora_plugin": "auto"}, "lora_config": {"max_lora_rank": 8}}),
        (write_checkpoint, pbtxt(enable_lora="true", max_lora_rank="8"), {}),
    ],
)
def test_adapters_are_added_and_removed_while_it_serves(
    write: Callable[..., None], config: str, files: dict[str, Any], load: Load, responder: Any, tmp_path: Path
) -> None:
    instance = load(write, config, **files)
    lora_files.write(tmp_path / "new", 8)
    lora_files.write(tmp_path / "large", 16)
    lora_files.write(tmp_path / "partial", 8)
    (tmp_path / "partial/adapter_config.json").unlink()
    instance.manage(AddAdapter("new", str(tmp_path / "new")))
    with pytest.raises(ServingError, match="has rank 16, and the engine takes at most 8"):
        instance.manage(AddAdapter("large", str(tmp_path / "large")))
    for name in ("missing", "partial"):
        with pytest.raises(ServingError, match=f"adapter '{name}'.* has no .*adapter_") as error:
            instance.manage(AddAdapter(name, str(tmp_path / name)))
        assert error.value.kind is ErrorKind.UNAVAILABLE
    instance.execute([tokens_request(10, max_tokens=1, lora_name="new")], responder)
    responder.wait_for_final(0)
    assert output(responder.only(0)) == [12]
    instance.manage(RemoveAdapter("new"))
    with pytest.raises(ServingError) as error:
        instance.manage(RemoveAdapter("new"))
    assert error.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("engine", [True, False])
def test_an_adapter_that_is_cut_off_or_another_models_is_refused(
    engine: bool, load: Load, responder: Any, calls: Calls
) -> None:
    query = "base_model.model.model.layers.{}.self_attn.q_proj.lora_A.weight"
    files = {
        "one": {query.format(0): (8, HIDDEN)},
        "smaller": {query.format(0): (8, 4)},
        "deeper": {query.format(7): (8, HIDDEN)},
    }

    def write(folder: Path) -> None:
        plugins = {"plugin_config": {"lora_plugin": "auto"}, "lora_config": {"max_lora_rank": 16}}
        write_engine(folder, **plugins) if engine else write_checkpoint(folder)
        for name, shapes in files.items():
            lora_files.write(folder / name, shapes=shapes)
        cut = lora_files.write(folder / "two", shapes=files["one"]) / "adapter_model.safetensors"
        cut.write_bytes(cut.read_bytes()[:-1])

    instance = load(write, pbtxt(adapters='[{"name": "two", "path": "two"}, {"name": "one", "path": "one"}]'))
    version = instance._spec.version_dir
    for name, message in (("two", "cut off or broken"), ("smaller", "hidden size 4,"), ("deeper", "of layer 7,")):
        with pytest.raises(ServingError, match=f"adapter '{name}'.*{message}") as error:
            instance.manage(AddAdapter(name, str(version / name)))
        assert error.value.kind is ErrorKind.INVALID_ARG
    instance.manage(AddAdapter("one", str(version / "one")))
    instance.execute([tokens_request(10, max_tokens=1, lora_name="one")], responder)
    responder.wait_for_final(0)
    assert output(responder.only(0)) == [12]
    (call,) = calls("LLM")
    assert engine or call["lora_config"]["lora_dir"] == [str(version / "one")]


def test_without_lora_there_are_no_adapters_and_nothing_sleeps(load: Load, tmp_path: Path) -> None:
    instance = load()
    with pytest.raises(ServingError, match="was opened without LoRA"):
        instance.manage(AddAdapter("new", str(tmp_path)))
    with pytest.raises(ServingError, match="cannot sleep"):
        instance.manage(Sleep())


@pytest.mark.parametrize(
    ("write", "parameters", "expected"),
    [
        (write_engine, {}, 90_000_000 - 6),
        (write_checkpoint, {"arguments": "tensor_parallel_size: 2"}, 90_000_000 - 500),
    ],
)
def test_the_cache_has_what_a_footprint_leaves(
    write: Callable[..., None], parameters: dict[str, str], expected: int, load: Load, calls: Calls
) -> None:
    def with_weights(folder: Path) -> None:
        write(folder, **parameters)
        if write is write_checkpoint:
            (folder / "model.safetensors").write_bytes(b"w" * 1000)

    load(with_weights, pbtxt(GPU_MEMORY="100000000"))
    assert calls("LLM")[0]["kv_cache_config"]["max_gpu_total_bytes"] == expected


def test_a_cache_that_is_bounded_otherwise_stays(load: Load, calls: Calls) -> None:
    load(config=pbtxt(GPU_MEMORY="100000000", kv_cache_free_gpu_mem_fraction="0.5"))
    assert calls("LLM")[0]["kv_cache_config"]["max_gpu_total_bytes"] == 0


def test_weights_that_take_all_of_a_footprint_are_refused(model_folder: Any, host: Any, calls: Calls) -> None:
    error = refused(model_folder, host, write_engine, pbtxt(GPU_MEMORY="6"))
    assert "of which its weights need 6" in error.message
    assert "raise footprint.gpuMemory" in error.message

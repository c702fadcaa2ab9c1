"""The request is compared with the engine's own config.json; an error names both values that differ."""

import importlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_builder.tensorrt_llm.checkpoints.steps import mapping
from argosy_builder.tensorrt_llm.engine.readback import check_engine
from argosy_builder.tensorrt_llm.engine.steps import build_command
from argosy_builder.tensorrt_llm.settings import Settings, settings_of

from .conftest import Standins, a_request


def engine(settings: Settings, model: Path, folder: Path) -> dict[str, Any]:
    """Write the engine that the stand-in for trtllm-build makes of a command, without its process."""
    program, checkpoints = importlib.import_module("trtllm_build"), importlib.import_module("tensorrt_llm.checkpoints")
    quantized = importlib.import_module("tensorrt_llm.models.modeling_utils").QuantConfig(
        quant_algo=settings.algorithm,
        kv_cache_quant_algo=settings.kv_cache_dtype and settings.kv_cache_dtype.upper(),
        group_size=settings.block or 128,
    )
    mapped = checkpoints.Mapping(**mapping(settings)).to_dict()
    checkpoint = checkpoints.config(model, settings.dtype, mapped, asdict(quantized))
    command = build_command(settings, Path("checkpoint"), folder, Path("cache"))
    arguments = program.parser().parse_args(command[1:])
    for rank in range(settings.ranks):
        (folder / f"rank{rank}.engine").write_bytes(b"engine")
    return {"version": "1.2.1", "pretrained_config": checkpoint, "build_config": program.config(arguments, checkpoint)}


def written(settings: Settings, model: Path, folder: Path, **has: Any) -> None:
    """Write the same with other values at these paths."""
    config = engine(settings, model, folder)
    for path, value in has.items():
        at = config
        *parents, last = path.split(".")
        for part in parents:
            at = at[part]
        at[last] = value
    (folder / "config.json").write_text(json.dumps(config))


DIFFERENCES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"precision": "bf16"},
        {"pretrained_config.dtype": "float16"},
        "spec.engine.precision: requested bfloat16, and the engine has float16 (pretrained_config.dtype)",
    ),
    (
        {"options": {"max_seq_len": 100}},
        {"build_config.max_seq_len": 64},
        "spec.engine.options.max_seq_len: requested 100, and the engine has 64",
    ),
    (
        {"max_batch_size": 8},
        {"build_config.max_batch_size": 4},
        "spec.engine.options.max_batch_size: requested 8, and the engine has 4",
    ),
    (
        {"options": {"max_num_tokens": 256, "max_batch_size": 4, "max_seq_len": 64}},
        {"build_config.max_num_tokens": 32},
        "spec.engine.options.max_num_tokens: requested 256, and the engine has 32",
    ),
    (
        {"options": {"max_num_tokens": 64, "max_batch_size": 4}},
        {"build_config.max_num_tokens": 512},
        "spec.engine.options.max_num_tokens: requested 64, and the engine has 512",
    ),
    (
        {"precision": "fp8"},
        {"pretrained_config.quantization.quant_algo": None},
        "spec.engine.precision: requested FP8, and the engine has nothing",
    ),
    (
        {"precision": "fp8", "options": {"kv_cache_dtype": "fp8"}},
        {"pretrained_config.quantization.kv_cache_quant_algo": "INT8"},
        "spec.engine.options.kv_cache_dtype: requested FP8, and the engine has INT8",
    ),
    (
        {"tensor": 2},
        {"pretrained_config.mapping.tp_size": 1},
        "spec.parallelism.tensor: requested 2, and the engine has 1",
    ),
    (
        {"options": {"gemm_plugin": "auto"}},
        {"build_config.plugin_config.gemm_plugin": None},
        "spec.engine.options.gemm_plugin: requested auto, and the engine has nothing",
    ),
    (
        {"tensor": 2, "options": {"reduce_fusion": True}},
        {"build_config.plugin_config.reduce_fusion": False},
        "spec.engine.options.reduce_fusion: requested True, and the engine has False",
    ),
    (
        {"options": {"tokens_per_block": 64}},
        {"build_config.plugin_config.tokens_per_block": 32},
        "tokens_per_block: requested 64, and the engine has 32",
    ),
]


@pytest.mark.parametrize(("changes", "has", "message"), DIFFERENCES)
def test_an_engine_that_is_not_what_was_requested_fails_with_both_values(
    changes: dict[str, Any], has: dict[str, Any], message: str, checkpoint: Path, tmp_path: Path, standins: Standins
) -> None:
    settings = settings_of(a_request(**changes))
    written(settings, checkpoint, tmp_path, **has)
    with pytest.raises(BuildError) as error:
        check_engine(settings, tmp_path)
    assert error.value.failure is BuildFailure.ENGINE_DIFFERS
    assert message in error.value.message


LOOKAHEAD: dict[str, Any] = {"speculative_decoding_mode": "lookahead_decoding", "max_draft_len": 5}
SAME: list[dict[str, Any]] = [
    {},
    {"options": {"max_num_tokens": 8192, "max_batch_size": 4}},
    {"options": {"max_num_tokens": 1}},
    {"options": {"nccl_plugin": "auto"}},
    {"options": {"paged_state": True}},
    {"options": {"kv_cache_type": "paged"}},
    {"options": {"max_seq_len": 64, "max_draft_len": 5, "speculative_decoding_mode": "draft_tokens_external"}},
    {"precision": "fp4", "options": {"gemm_plugin": "auto"}},
    {"precision": "int4", "options": {"awq_block_size": 64, "qformat": "w4a8_awq"}},
    {"tensor": 2, "options": {"reduce_fusion": True, "user_buffer": True, "nccl_plugin": "auto"}},
    {"options": {"gemm_plugin": "disable", "dora_plugin": True, "context_fmha": False}},
    # cut to max_seq_len x max_batch_size, before max_seq_len grows by what is guessed, and raised to a step of all
    {"options": {**LOOKAHEAD, "max_seq_len": 64, "max_batch_size": 2, "max_num_tokens": 128}},
    {"options": {**LOOKAHEAD, "max_batch_size": 64, "max_num_tokens": 100}},
    {"options": {"max_num_tokens": 5, "max_batch_size": 1, "max_seq_len": 8, "tokens_per_block": 64}},
    {"options": {"max_num_tokens": 5, "max_batch_size": 4, "max_seq_len": 100, "context_fmha": False}},
    {"options": {"max_num_tokens": 4000, "opt_num_tokens": 3000, "max_batch_size": 4}},
]


@pytest.mark.parametrize("changes", SAME)
def test_what_means_the_same_passes(
    changes: dict[str, Any], checkpoint: Path, tmp_path: Path, standins: Standins
) -> None:
    settings = settings_of(a_request(**changes))
    written(settings, checkpoint, tmp_path)
    check_engine(settings, tmp_path)


@pytest.mark.parametrize("written_so", ["PAGED", "KVCacheType.PAGED", "paged"])
def test_releases_write_the_caches_kind_in_several_ways(
    written_so: str, checkpoint: Path, tmp_path: Path, standins: Standins
) -> None:
    settings = settings_of(a_request(options={"kv_cache_type": "paged"}))
    written(settings, checkpoint, tmp_path, **{"build_config.kv_cache_type": written_so})
    check_engine(settings, tmp_path)


def test_a_rank_that_is_missing_or_too_many_is_a_difference(
    checkpoint: Path, tmp_path: Path, standins: Standins
) -> None:
    settings = settings_of(a_request(tensor=2))
    written(settings, checkpoint, tmp_path)
    (tmp_path / "rank1.engine").write_bytes(b"")
    with pytest.raises(BuildError, match=r"rank1\.engine is missing or empty"):
        check_engine(settings, tmp_path)
    (tmp_path / "rank1.engine").write_bytes(b"engine")
    (tmp_path / "rank2.engine").write_bytes(b"engine")
    with pytest.raises(BuildError, match="there are 3 ranks, and 2 were requested"):
        check_engine(settings, tmp_path)


@pytest.mark.parametrize("text", [None, "", "[]", "{", "{}"])
def test_an_engine_without_a_configuration_is_none(text: str | None, tmp_path: Path) -> None:
    (tmp_path / "rank0.engine").write_bytes(b"engine")
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(BuildError) as error:
        check_engine(settings_of(a_request()), tmp_path)
    assert error.value.failure is BuildFailure.ENGINE_DIFFERS


def test_a_quantized_checkpoint_is_read_back(standins: Standins, build: Callable[..., Path], texts: Path) -> None:
    standins.change(**{"checkpoint:quantization.quant_algo": None})
    with pytest.raises(BuildError, match="quant_algo: requested FP8, and the checkpoint has nothing"):
        build(a_request(precision="fp8", options={"backend": "pytorch"}), texts)

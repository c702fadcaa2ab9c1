"""Stand-ins for NVIDIA's backends: they read a configuration, and refuse it, as the sources of 26.04 to 26.07 do."""

import json
from collections.abc import Mapping
from typing import Any

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

REQUIRED = ("gpt_model_type", "tokenizer_dir", "xgrammar_tokenizer_info_path", "guided_decoding_backend")
"""Read without a default by `model_instance_state.cc`."""
LOOKAHEAD = ("lookahead_window_size", "lookahead_ngram_size", "lookahead_verification_set_size")
DECODING = ("top_k", "top_p", "top_k_top_p", "beam_search", "medusa", "redrafter", "lookahead", "eagle")
BATCHING = ("V1", "v1", "inflight_batching", "inflight_fused_batching")
VLLM_ARGUMENTS = frozenset(
    (
        *("model", "tokenizer", "dtype", "max_model_len", "tensor_parallel_size", "pipeline_parallel_size"),
        *("gpu_memory_utilization", "kv_cache_memory_bytes", "kv_cache_dtype", "max_num_seqs", "enable_prefix_caching"),
        *("max_num_batched_tokens", "enable_lora", "max_loras", "max_lora_rank", "quantization", "enforce_eager"),
        *("trust_remote_code", "disable_log_stats", "served_model_name", "seed", "block_size"),
    )
)
"""Of `AsyncEngineArgs`, which refuses any other name."""


class BackendError(Exception):
    """The backend does not load the model."""


def load_tensorrtllm(config: ModelConfig, paged_context_fmha: bool = True) -> dict[str, Any]:
    """Return what the C++ backend `tensorrtllm` reads. `paged_context_fmha`: whether the engine was built with it."""
    values = {name: parameter.string_value for name, parameter in config.parameters.items()}
    if config.backend != "tensorrtllm":
        raise BackendError(f"the backend is {config.backend}")
    for name in REQUIRED:
        if name not in values:
            raise BackendError(f"Cannot find parameter with name: {name}")
    if values["gpt_model_type"] not in BATCHING:
        raise BackendError("Invalid gpt_model_type")
    if not values.get("gpt_model_path"):
        raise BackendError("Both encoder and decoder model paths are empty")
    if values["guided_decoding_backend"] not in ("", "xgrammar"):
        raise BackendError("Guided decoding is currently supported with 'xgrammar' backend")
    reuse = _flag(values.get("enable_kv_cache_reuse", "true"))
    if reuse and not paged_context_fmha:
        raise BackendError("enable_kv_cache_reuse needs an engine with use_paged_context_fmha")
    mode = values.get("decoding_mode")
    sizes = tuple(int(values[name]) for name in LOOKAHEAD if name in values)
    if mode == "lookahead" and len(sizes) < len(LOOKAHEAD):
        raise BackendError("Decoding mode is set to lookahead but lookahead parameters are not specified")
    if mode is not None and mode not in DECODING:
        raise BackendError(f"{mode} would be ignored")
    return {
        "gpt_model_path": values["gpt_model_path"],
        "enable_kv_cache_reuse": reuse,
        "decoding_mode": mode,
        "lookahead": sizes or None,
        "gpus": [int(gpu) for gpu in values["gpu_device_ids"].split(";")[0].split(",")],
    }


def load_vllm(config: ModelConfig, files: Mapping[str, str], gpus: int, version: int) -> dict[str, Any]:
    """Return what NVIDIA's Python backend for vLLM reads, on a server with this many GPUs."""
    if config.backend != "vllm":
        raise BackendError(f"the backend is {config.backend}")
    if config.max_batch_size > 0:
        raise BackendError("max_batch_size: autofilled 0, and the configuration has another")
    if "model.json" not in files:
        raise BackendError("model.json must be in the version's folder")
    arguments = json.loads(files["model.json"].replace("${version}", str(version)))
    if unknown := arguments.keys() - VLLM_ARGUMENTS:
        raise BackendError(f"AsyncEngineArgs got an unexpected keyword argument {unknown}")
    split = arguments.get("tensor_parallel_size", 1) * arguments.get("pipeline_parallel_size", 1)
    (group,) = config.instance_group
    if group.kind == ModelInstanceGroup.KIND_GPU:
        if split > 1:
            raise BackendError("KIND_GPU is currently only supported for models with a single GPU")
        used = list(group.gpus)
    else:
        used = list(range(split))
    if any(gpu >= gpus for gpu in used):
        raise BackendError("invalid device ordinal")
    metrics = _flag(config.parameters["REPORT_CUSTOM_METRICS"].string_value)
    return {**arguments, "gpus": used, "metrics": metrics}


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise BackendError(f"{text!r} is no flag")
    return text == "true"

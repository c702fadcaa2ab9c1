"""The arguments of TensorRT-LLM's classes, from a model's parameters and its `llm_args.yaml`.

Values are plain: `opening` makes TensorRT-LLM's own of them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_common.quantity import parse_bytes
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import invalid

from .folders import ModelFolder

LLM_ARGUMENTS: Final = frozenset(
    (
        *("trust_remote_code", "tokenizer_mode", "tensor_parallel_size", "dtype", "revision", "tokenizer_revision"),
        *("pipeline_parallel_size", "context_parallel_size", "gpus_per_node", "moe_cluster_parallel_size"),
        *("moe_tensor_parallel_size", "moe_expert_parallel_size", "enable_attention_dp", "enable_lm_head_tp_in_adp"),
        *("pp_partition", "cp_config", "load_format", "kv_cache_config", "enable_chunked_prefill"),
        *("guided_decoding_backend", "iter_stats_max_iterations", "request_stats_max_iterations"),
        *("peft_cache_config", "scheduler_config", "sparse_attention_config", "speculative_config"),
        *("max_batch_size", "max_input_len", "max_seq_len", "max_beam_width", "max_num_tokens"),
        *("cuda_graph_config", "disable_overlap_scheduler", "moe_config", "attn_backend", "sampler_type"),
        *("batch_wait_timeout_ms", "torch_compile_config", "enable_autotuner", "stream_interval"),
        *("checkpoint_format", "allreduce_strategy", "print_iter_log", "max_stats_len", "reasoning_parser"),
        *("enable_lora", "lora_config"),
    )
)
"""What `llm_args.yaml` may have; `backend: pytorch` is left out, since the class is that backend."""
_CACHE: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "kv_cache_free_gpu_mem_fraction": ("free_gpu_memory_fraction", float),
    "max_tokens_in_paged_kv_cache": ("max_tokens", int),
    "max_attention_window_size": ("max_attention_window", lambda value: [int(size) for size in value.split(",")]),
    "sink_token_length": ("sink_token_length", int),
    "kv_cache_host_memory_bytes": ("host_cache_size", int),
    "kv_cache_onboard_blocks": ("onboard_blocks", lambda value: _flag(value)),
    "cross_kv_cache_fraction": ("cross_kv_cache_fraction", float),
    "enable_kv_cache_reuse": ("enable_block_reuse", lambda value: _flag(value)),
    "kv_cache_memory": ("max_gpu_total_bytes", lambda value: parse_bytes(value.removesuffix("B"))),
}
"""Parameters of the cache: the field of KvCacheConfig, and how it is read."""
_POLICIES: Final = {"max_utilization": "MAX_UTILIZATION", "guaranteed_no_evict": "GUARANTEED_NO_EVICT"}
_KNOBS: Final = ("multi_block_mode", "enable_context_fmha_fp32_acc", "cuda_graph_mode", "cuda_graph_cache_size")
_LOOKAHEAD: Final = {
    "lookahead_window_size": "max_window_size",
    "lookahead_ngram_size": "max_ngram_size",
    "lookahead_verification_set_size": "max_verification_set_size",
}
GUIDED: Final = "guided_decoding_backend"
GPU_MEMORY: Final = "GPU_MEMORY"
"""The parameter of the bytes of each GPU that the model may take, as a footprint declares them."""
_SIZES: Final = frozenset({"free_gpu_memory_fraction", "max_tokens", "max_gpu_total_bytes"})
"""Fields of KvCacheConfig that bound its size."""
_ACTIVATIONS: Final = 10
"""Percent of that memory for activations, the context of CUDA and all else."""


def engine_arguments(config: ModelConfig, folder: ModelFolder) -> dict[str, Any]:
    """Return the arguments for an engine. Raises ServingError (INVALID_ARG)."""
    parameters = Parameters(config)
    arguments = {**_common(config, folder), "kv_cache_config": _cache(config, folder, folder.ranks)}
    about = f"model '{config.name}': parameter"
    if parameters.text("decoding_mode") == "beam_search":
        raise invalid(f"{about} 'decoding_mode' is 'beam_search', which requests cannot ask for; leave it out")
    if parameters.number("gpu_weights_percent", 1.0) != 1.0:
        raise invalid(f"{about} 'gpu_weights_percent' is of NVIDIA's server alone; leave it out")
    if policy := parameters.text("batch_scheduler_policy"):
        if policy not in _POLICIES:
            raise invalid(
                f"model '{config.name}': parameter 'batch_scheduler_policy' is '{policy}', expected "
                f"{' or '.join(_POLICIES)}"
            )
        arguments["scheduler_config"] = {"capacity_scheduler_policy": _POLICIES[policy]}
    if "normalize_log_probs" in parameters:
        arguments["normalize_log_probs"] = parameters.flag("normalize_log_probs", True)
    knobs = {name: _knob(parameters, name) for name in _KNOBS if name in parameters}
    if knobs:
        arguments["extended_runtime_perf_knob_config"] = knobs
    if parameters.text("decoding_mode") == "lookahead":
        arguments["speculative_config"] = {
            field: parameters.integer(name, 0, minimum=1) for name, field in _LOOKAHEAD.items()
        }
    return arguments


def checkpoint_arguments(
    config: ModelConfig, folder: ModelFolder, declared: Mapping[str, Any], gpus: int
) -> dict[str, Any]:
    """Return the arguments for a checkpoint: the `declared` ones, and over them those of the parameters.

    Without a parallelism among them the model is split over its `gpus`. Raises ServingError (INVALID_ARG).
    """
    arguments = {name: value for name, value in declared.items() if name != "backend"}
    if declared.get("backend", "pytorch") != "pytorch":
        raise invalid(f"model '{config.name}': {folder.arguments} has another backend than pytorch")
    if unknown := sorted(arguments.keys() - LLM_ARGUMENTS):
        raise invalid(f"model '{config.name}': {folder.arguments}: tensorrt_llm.LLM takes no '{unknown[0]}' here")
    arguments |= {**_common(config, folder), "enable_iter_perf_stats": True}
    if Parameters(config).flag("enable_lora", False):
        arguments["enable_lora"] = True
    if GUIDED in declared and GUIDED not in config.parameters:
        arguments[GUIDED] = declared[GUIDED]
    if not {"tensor_parallel_size", "pipeline_parallel_size"} & declared.keys() and gpus > 1:
        arguments["tensor_parallel_size"] = gpus
    split = int(arguments.get("tensor_parallel_size") or 1) * int(arguments.get("pipeline_parallel_size") or 1)
    arguments["kv_cache_config"] = {
        **(declared.get("kv_cache_config") or {}),
        **_cache(config, folder, split, declared.get("kv_cache_config") or {}),
    }
    return arguments


def _common(config: ModelConfig, folder: ModelFolder) -> dict[str, Any]:
    parameters = Parameters(config)
    guided = parameters.text(GUIDED, "xgrammar" if folder.tokenizer is not None and not _guesses(folder) else "")
    if guided not in ("", "xgrammar", "llguidance") or (guided == "llguidance" and folder.engine):
        raise invalid(f"model '{config.name}': parameter '{GUIDED}' is '{guided}', expected xgrammar or nothing")
    if guided and folder.tokenizer is None:
        raise invalid(f"model '{config.name}': parameter '{GUIDED}' needs a tokenizer among the model's files")
    arguments: dict[str, Any] = {GUIDED: guided} if guided else {}
    if "enable_chunked_context" in parameters:
        arguments["enable_chunked_prefill"] = parameters.flag("enable_chunked_context", False)
    return arguments


def _guesses(folder: ModelFolder) -> bool:
    """Return whether tokens are guessed ahead, which does not go with guided decoding."""
    return bool(folder.build.get("speculative_decoding_mode") not in (None, 0, 1)) and folder.engine


def _cache(
    config: ModelConfig, folder: ModelFolder, split: int, declared: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the fields of KvCacheConfig that parameters set, and its size by the memory that the model may take, where
    nothing else bounds it. The weights are shared out to `split` GPUs.
    """
    fields: dict[str, Any] = {}
    for name, (field, read) in _CACHE.items():
        if name not in config.parameters:
            continue
        value = config.parameters[name].string_value.strip()
        try:
            fields[field] = read(value)
        except ValueError as error:
            raise invalid(f"model '{config.name}': parameter '{name}' is '{value}': {error}") from None
    if GPU_MEMORY in config.parameters and not _SIZES & {*fields, *(declared or {})}:
        fields["max_gpu_total_bytes"] = _rest(config, folder, split)
    return fields


def _rest(config: ModelConfig, folder: ModelFolder, split: int) -> int:
    """Return what is left for the cache of a GPU's memory that the model may take. Raises ServingError."""
    memory = Parameters(config).integer(GPU_MEMORY, 0, minimum=1)
    weights = -(-folder.weights // max(split, 1))
    rest = memory - weights - memory * _ACTIVATIONS // 100
    if rest <= 0:
        raise invalid(
            f"model '{config.name}': it may take {memory} bytes of each GPU, of which its weights need {weights} and "
            f"activations {_ACTIVATIONS} %: nothing is left for the cache; raise footprint.gpuMemory"
        )
    return rest


def _knob(parameters: Parameters, name: str) -> bool | int:
    return parameters.integer(name, 0, minimum=0) if name == "cuda_graph_cache_size" else parameters.flag(name, False)


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return value.lower() == "true"

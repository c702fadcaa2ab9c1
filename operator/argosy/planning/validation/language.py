"""Settings of language models that the bundled server's engines refuse, or that other fields of the spec decide.

Arguments of vLLM's engine are parameters of `spec.config` by their own names. Which of them a release has, only that
release knows; what looks like a misspelt one is reported here.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from argosy.api import Fault, InferenceModel, Reason
from argosy.api.model.footprint import Footprint

ENGINES: Final = frozenset({"vllm", "tensorrtllm"})
"""Backends that join requests token by token, by themselves."""
_DECIDED: Final = {
    "model": "spec.storageUri",
    "tensor_parallel_size": "spec.parallelism.tensor",
    "pipeline_parallel_size": "spec.parallelism.pipeline",
    "max_num_seqs": "spec.maxBatchSize",
    "device_ids": "the plan",
    "gpu_device_ids": "the plan",
}
"""Arguments of vLLM's engine that fields of the spec decide."""
_OF_FOOTPRINT: Final = ("gpu_memory_utilization", "kv_cache_memory_bytes")
ARGUMENTS: Final = frozenset(
    (
        *("tokenizer", "tokenizer_mode", "trust_remote_code", "dtype", "seed", "revision", "quantization", "runner"),
        *("max_model_len", "block_size", "kv_cache_dtype", "cpu_offload_gb", "max_num_batched_tokens", "load_format"),
        *("enable_prefix_caching", "enable_chunked_prefill", "scheduling_policy", "enforce_eager", "hf_overrides"),
        *("enable_lora", "max_loras", "max_lora_rank", "max_cpu_loras", "speculative_config", "enable_sleep_mode"),
        *("structured_outputs_config", "compilation_config", "distributed_executor_backend", "generation_config"),
        *("stream_interval", "max_logprobs", "enable_expert_parallel", "data_parallel_size", "limit_mm_per_prompt"),
    )
)
"""Arguments of vLLM's engine that users set most; others pass unchanged."""
_OF_NVIDIA: Final = (("decoding_mode", "beam_search"), ("gpu_weights_percent", None))
"""Serving options of TensorRT-LLM's engines, with the value or any, that its LLM API has no counterpart of."""
_WAY_OUT: Final = "use a pool with runtime.name triton, or leave it out"
_TYPING_ERROR: Final = 0.87
"""How alike two names are at least, of 1, for the one to be the other misspelt; arguments of vLLM are less alike."""


def engine_faults(model: InferenceModel) -> Iterator[Fault]:
    """Yield what an engine of the bundled server would not load, or would not do."""
    backend = model.spec.backend
    if backend not in ENGINES:
        return
    if model.spec.batching is not None:
        message = f"backend {backend} joins requests token by token, by itself: leave it out"
        yield Fault(message, ("spec", "batching"), Reason.UNSUPPORTED_FORMAT)
    if backend == "vllm":
        yield from _arguments(model)
    else:
        yield from _serving_options(model)


def _serving_options(model: InferenceModel) -> Iterator[Fault]:
    """Yield the serving options of an engine that NVIDIA's server alone has."""
    options = model.spec.engine.options if model.spec.engine is not None else {}
    for name, value in _OF_NVIDIA:
        if name in options and (value is None or options[name] == value) and options[name] != 1:
            path = ("spec", "engine", "options", name)
            message = f"is {options[name]}, which NVIDIA's server alone does: {_WAY_OUT}"
            yield Fault(message, path, Reason.UNSUPPORTED_FORMAT)


def _arguments(model: InferenceModel) -> Iterator[Fault]:
    parameters = model.spec.config.get("parameters") or {}
    declares_memory = (model.spec.footprint or Footprint()).gpu_memory is not None
    for name in parameters:
        path = ("spec", "config", "parameters", name)
        if name in _DECIDED:
            yield Fault(f"is decided by {_DECIDED[name]}; set that instead", path)
        elif name in _OF_FOOTPRINT and declares_memory:
            yield Fault("footprint.gpuMemory decides how much memory the engine takes; leave out one of them", path)
        elif name not in ARGUMENTS and (near := get_close_matches(name, ARGUMENTS, 1, _TYPING_ERROR)):
            yield Fault(f"vLLM's engine has no such argument; did you mean {near[0]!r}?", path)

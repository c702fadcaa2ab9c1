"""Settings of language models that the bundled server's engines refuse, or that other fields of the spec decide.

Arguments of vLLM's engine are parameters of `spec.config` by their own names. Which of them a release has, only that
release knows; what looks like a misspelt one is reported here.
"""

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from argosy.api import Fault, InferenceModel, Reason
from argosy.api.model.footprint import Footprint

ENGINES: Final = frozenset({"vllm", "tensorrtllm"})
"""Backends that join requests token by token, by themselves."""
_TAKES_DEFAULTS: Final = ENGINES | {"transformers"}
"""Backends whose parameters say what a request leaves out."""
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
DEFAULTS: Final = (
    *("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"),
    "max_new_tokens",
)
"""Names in a `generation_config.json` that have an effect: what a request leaves out."""
_SOURCE: Final = "generation_config"
_OVERRIDES: Final = "override_generation_config"
_SOURCES: Final = ("auto", "vllm")
ARGUMENTS: Final = frozenset(
    (
        *("tokenizer", "tokenizer_mode", "trust_remote_code", "dtype", "seed", "revision", "quantization", "runner"),
        *("max_model_len", "block_size", "kv_cache_dtype", "cpu_offload_gb", "max_num_batched_tokens", "load_format"),
        *("enable_prefix_caching", "enable_chunked_prefill", "scheduling_policy", "enforce_eager", "hf_overrides"),
        *("enable_lora", "max_loras", "max_lora_rank", "max_cpu_loras", "speculative_config", "enable_sleep_mode"),
        *("structured_outputs_config", "compilation_config", "distributed_executor_backend", _SOURCE, _OVERRIDES),
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
    if backend in _TAKES_DEFAULTS:
        yield from _defaults(model)
    if backend not in ENGINES:
        return
    if model.spec.batching is not None:
        message = f"backend {backend} joins requests token by token, by itself: leave it out"
        yield Fault(message, ("spec", "batching"), Reason.UNSUPPORTED_FORMAT)
    if backend == "vllm":
        yield from _arguments(model)
    else:
        yield from _serving_options(model)


def _defaults(model: InferenceModel) -> Iterator[Fault]:
    """Yield what no backend of language models can read of the defaults of requests."""
    parameters = model.spec.config.get("parameters") or {}
    source = _text(parameters, _SOURCE)
    # vLLM also takes a folder.
    if source is not None and source not in _SOURCES and not (model.spec.backend == "vllm" and "/" in source):
        yield Fault(f"is {source!r}; expected {' or '.join(_SOURCES)}", ("spec", "config", "parameters", _SOURCE))
    overrides = _text(parameters, _OVERRIDES)
    if overrides is not None and (wrong := _wrong_overrides(overrides)):
        yield Fault(wrong, ("spec", "config", "parameters", _OVERRIDES))


def _wrong_overrides(text: str) -> str:
    example = "write a JSON object, such as '{\"temperature\": 0}'"
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"is not JSON ({str(error)[:80]}): {example}"
    if not isinstance(values, dict):
        return f"is no JSON object: {example}"
    unknown = sorted(values.keys() - set(DEFAULTS))
    return f"{', '.join(map(repr, unknown))[:80]} has no effect; known: {', '.join(DEFAULTS)}" if unknown else ""


def _text(parameters: Mapping[str, Any], name: str) -> str | None:
    """Return the text of a parameter, by either of the names that JSON has for its field; None without it."""
    value = parameters.get(name)
    return None if value is None else str(value.get("string_value", value.get("stringValue", "")))


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

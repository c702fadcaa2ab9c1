"""The tensorrtllm backend: a language model on NVIDIA's TensorRT-LLM, by its LLM API, in an engine environment.

What may live here: which class opens which folder, the arguments of both, what a request asks of the engine, and what
becomes of its tokens. TensorRT-LLM is imported by `load` alone.

A version's folder holds one of these:

- an engine: `rank0.engine` …, and the `config.json` that trtllm-build wrote, with the tokenizer in `tokenizer/` or next
  to it. `tensorrt_llm._tensorrt_engine.LLM` opens it: the release that built it, and no other. Later releases than 1.2
  open none.
- a checkpoint of Hugging Face's form, quantized or not, perhaps with `llm_args.yaml`, the arguments of
  `tensorrt_llm.LLM`, which opens it without an engine.

Requests and responses are those of all language models (`argosy_runtime.language`). Stop strings are found in the text,
not among tokens, and each of `n` choices is a request of the engine's. What TensorRT-LLM lacks is refused by name.

Config parameters have the names of NVIDIA's backend: `kv_cache_free_gpu_mem_fraction`, `max_tokens_in_paged_kv_cache`,
`max_attention_window_size`, `kv_cache_host_memory_bytes`, `enable_kv_cache_reuse`, `enable_chunked_context`,
`batch_scheduler_policy`, `guided_decoding_backend` (xgrammar, which is the default; empty: off), `decoding_mode`
lookahead with its three sizes, `normalize_log_probs`, `multi_block_mode`, `enable_context_fmha_fp32_acc`,
`cuda_graph_mode`, `cuda_graph_cache_size`, `exclude_input_in_output`; `generation_config` and
`override_generation_config` are vLLM's. `kv_cache_memory` is the bytes of the cache on
each GPU, `GPU_MEMORY` those of weights and cache together. `adapters` is a JSON list of LoRA adapters {name, path};
with `enable_lora` (and `max_lora_rank`) a checkpoint takes others later. `gpu_device_ids` names the GPUs of KIND_MODEL.

**Never run**: neither TensorRT-LLM nor a GPU for it was available. It is written against the sources of 1.2, and tested
with a stand-in that has their names and arguments.
"""

from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import Host, InstanceSpec, ModelInstance
from argosy_runtime.backends.generation import autofill
from argosy_runtime.errors import invalid

from .folders import folder_of


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
    """Return a copy of `config` with tensors, a decoupled transaction policy and no batch dimension.

    Raises ServingError: UNAVAILABLE where the folder holds no model, INVALID_ARG where max_batch_size is set.
    """
    _check(config)
    folder = folder_of(config.name, version_dir)
    return autofill.completed(config, ("prompt_logprobs",), has_tokenizer=folder.tokenizer is not None)


def load(spec: InstanceSpec, host: Host) -> ModelInstance:
    """Open the engine or the checkpoint, which takes minutes.

    Raises ServingError that says what does not fit or is missing.
    """
    _check(spec.config)
    from .instance import open_instance

    return open_instance(spec, host)


def _check(config: ModelConfig) -> None:
    if config.max_batch_size > 0:
        raise invalid(
            f"model '{config.name}': max_batch_size must be 0 for backend 'tensorrtllm', which batches by itself"
        )


__all__ = ["complete_config", "load"]

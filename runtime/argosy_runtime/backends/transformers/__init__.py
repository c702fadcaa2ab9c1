"""The transformers backend: a causal language model as Hugging Face saves it, batched token by token.

What may live here: sizing the cache, feeding the library's own paged continuous batching, and what a request's tokens
become. A version's folder holds `config.json`, `*.safetensors` and perhaps a tokenizer.

Requests join the running batch as they come and leave as they end. Their tensors are those of all language models
(`argosy_runtime.language`), which a configuration without tensors gets: a prompt as text, tokens or a chat, for which
the tokenizer's own template is rendered. Without a tokenizer only tokens are taken. A model is decoupled unless its
configuration says `model_transaction_policy { decoupled: false }`; then a request has one response and may not stream.

A request's seed decides its tokens, whatever else is in the batch. This is the reference engine, which needs no package
but the library. It refuses what it lacks by name: structured outputs, adapters, penalties, biases, bad words and log
probabilities of prompts; log probabilities of tokens while it batches ahead of the results, which is the default on a
GPU.

Config parameters: `kv_cache_memory` (bytes, or with a suffix such as 2GiB) or `num_blocks`; `page_size`,
`max_batch_tokens`, `max_requests_per_batch`; `random_seed` (makes requests without a seed repeatable, in their order);
`decoding` (`sampling`, or `greedy`: the likeliest tokens, which saves the work of sampling, and other requests are
refused); `generation_config` and `override_generation_config` as in vLLM; `dtype`, `attn_implementation`,
`use_cuda_graph`, `use_async_batching`.

An instance of KIND_MODEL takes the GPUs that `gpu_device_ids` names (0,1), or all that the process can use, and splits
every layer over them (tensor parallel), with a process for each; its heads have to divide evenly. The cache's memory
is that of all of them together. Tests split models over CPUs; nothing of this has run on several GPUs yet.
"""

from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.backends.generation import autofill
from argosy_runtime.errors import invalid, unavailable

from .instance import GenerationInstance, open_instance

_LACKING = (
    "prompt_logprobs",
    "bad_words",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "lora_name",
)
"""Tensors of the contract for what this backend lacks."""


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
    """Return a copy of `config` with tensors, a decoupled transaction policy and no batch dimension.

    Raises ServingError: UNAVAILABLE without `config.json`, INVALID_ARG where max_batch_size is set.
    """
    _check(config, version_dir)
    return autofill.completed(config, _LACKING, has_tokenizer=autofill.has_tokenizer(version_dir))


def load(spec: InstanceSpec, host: Host) -> GenerationInstance:
    """Open the model, reserve its cache and start the batch.

    Raises ServingError that says what does not fit or is missing.
    """
    _check(spec.config, spec.version_dir)
    return open_instance(spec, host)


def _check(config: ModelConfig, version_dir: Path) -> None:
    if not (version_dir / "config.json").is_file():
        raise unavailable(f"unable to find '{version_dir / 'config.json'}' for model '{config.name}'")
    if config.max_batch_size > 0:
        raise invalid(
            f"model '{config.name}': max_batch_size must be 0 for backend 'transformers', which batches by itself"
        )


__all__ = ["complete_config", "load"]

"""The transformers backend: a causal language model as Hugging Face saves it, batched token by token.

What may live here: the tensors of a generation request, sizing the cache, and feeding the library's own
paged continuous batching. A version's folder holds `config.json`, `*.safetensors` and perhaps a tokenizer.

Requests join the running batch as they come and leave as they end. They are given in one of two ways:

    input_ids INT32[-1] (or INT64), request_output_len INT32[1]; optional end_id, temperature, top_k, top_p,
    random_seed, streaming → output_ids INT32[-1] (new tokens; when streaming, those since the last
    response), sequence_length INT32[1]

    text_input BYTES[1]; optional stream BOOL[1], sampling_parameters BYTES[1] (a JSON object),
    exclude_input_in_output BOOL[1] → text_output BYTES[1]; needs a tokenizer

A model is decoupled unless its configuration says `model_transaction_policy { decoupled: false }`; then each request
has one response, which holds all of its tokens, and may not stream.

Tokens are the likeliest ones unless a request gives a temperature above 0, top_k or top_p. Those three may
differ from request to request. The random seed may not: the library keeps one per batch, so a sampling
request with another seed than the parameter `random_seed` is refused.

Config parameters: `kv_cache_memory` (bytes, or with a suffix such as 2GiB) or `num_blocks`; `page_size`,
`max_batch_tokens`, `max_requests_per_batch`, `random_seed`; `decoding` (`sampling`, or `greedy` to save the
work of sampling and refuse it); `dtype`, `attn_implementation`, `use_cuda_graph`, `use_async_batching`.

An instance of KIND_MODEL takes the GPUs that `gpu_device_ids` names (0,1), or all that the process can use, and splits
every layer over them (tensor parallel), with a process for each; its heads have to divide evenly. The cache's memory
is that of all of them together. Tests split models over CPUs; nothing of this has run on several GPUs yet.
"""

from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.errors import invalid, unavailable

from . import autofill
from .instance import GenerationInstance, open_instance


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
    """Return a copy of `config` with the tensors above, a decoupled transaction policy and no batch dimension.

    Raises ServingError: UNAVAILABLE without `config.json`, INVALID_ARG where max_batch_size is set.
    """
    _check(config, version_dir)
    return autofill.completed(config, has_tokenizer=autofill.has_tokenizer(version_dir))


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

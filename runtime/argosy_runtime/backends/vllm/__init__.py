"""The vllm backend: a language model on vLLM's `AsyncLLM`, in a process and an environment of its own.

What may live here: arguments of the engine (`opening`), requests on their way through it (`requests`), its adapters,
its reports, its sleep. The contract of language models, with names and datatypes of all tensors, is
`argosy_runtime.language`.

A version's folder has `model.json`, the arguments of vLLM's `AsyncEngineArgs` as in Triton's vLLM backend, or the files
of the model as Hugging Face saves it (`config.json`, `*.safetensors`, a tokenizer). Parameters of the configuration by
the names of `AsyncEngineArgs`, such as `max_model_len`, override both. Adapters are in `multi_lora.json`, names with
paths, and in the parameter `adapters`.

A model that pools (`"runner": "pooling"`) makes embeddings of texts: output `embedding` FP32[-1].

vLLM runs as its own packages allow: on GPUs, or with its build for CPUs. Tests run the latter; nothing of this has run
on a GPU yet.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.errors import invalid
from argosy_runtime.language import tensors

from .opening.arguments import engine_arguments, is_pooling

if TYPE_CHECKING:
    from .instance import VllmInstance


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfig) -> ModelConfig:
    """Return a copy of `config` with the tensors of a language or an embedding model, and no batch dimension.

    Raises ServingError: UNAVAILABLE without `model.json` and `config.json`, INVALID_ARG where max_batch_size is set.
    """
    _check(config)
    if is_pooling(engine_arguments(config, version_dir)):
        return tensors.completed(config, inputs=tensors.EMBEDDING_INPUTS, outputs=tensors.EMBEDDING_OUTPUTS)
    return tensors.completed(config)


def load(spec: InstanceSpec, host: Host) -> "VllmInstance":
    """Start the engine, and return when it can generate. Raises ServingError that says what does not fit."""
    _check(spec.config)
    from .instance import open_instance  # vLLM is in this process's environment only

    return open_instance(spec, host)


def _check(config: ModelConfig) -> None:
    if config.max_batch_size > 0:
        raise invalid(f"model '{config.name}': max_batch_size must be 0 for backend 'vllm', which batches by itself")


__all__ = ["complete_config", "load"]

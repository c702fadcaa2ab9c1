"""Adapters: configurations whose model is another model of the server with LoRA weights of its own.

Such a model has the backend `adapter`, the parameter `base` with the name of that model, and in its version's folder
the files of the adapter. Triton has no such backend.
"""

import re

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import ConfigError

BACKEND = "adapter"
PARAMETER = "base"
LORA_NAME, SAMPLING = "lora_name", "sampling_parameters"
"""The input of a language model that names the adapter to apply, and the one whose JSON object may name it."""
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM reserves memory for: the values of its `max_lora_rank`."""
LEAST_RESERVED = 16
"""The rank that is reserved for smaller ones too, as vLLM does by default."""
_NAMES = re.compile(rf"backend\W+{BACKEND}\b")


def is_adapter(config: ModelConfig) -> bool:
    """Return whether a model is an adapter of another one."""
    return bool(config.backend == BACKEND)


def may_be_adapter(text: str) -> bool:
    """Return whether the text of a configuration may be that of an adapter."""
    return _NAMES.search(text) is not None


def reserved_rank(rank: int) -> int:
    """Return the rank for which an engine reserves memory, so that it takes adapters of this rank.

    One larger than all that vLLM takes is returned as it is, for vLLM to refuse.
    """
    return next((possible for possible in RANKS if possible >= max(rank, LEAST_RESERVED)), rank)


def base_of(config: ModelConfig) -> str:
    """Return the model that an adapter belongs to. Raises ConfigError."""
    base = str(config.parameters[PARAMETER].string_value) if PARAMETER in config.parameters else ""
    if not base or base == config.name:
        raise ConfigError(f"adapter '{config.name}' needs the parameter '{PARAMETER}' with the name of its base model")
    return base

"""The tensors of a model: those of the contract that it can take and give."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.language import tensors

TOKENIZER_FILES: Final = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
_PLAIN: Final = (
    "max_tokens",
    "request_output_len",
    "end_id",
    "pad_id",
    "beam_width",
    "streaming",
    "temperature",
    "top_k",
    "top_p",
    "random_seed",
    "seed",
    "stop_words",
    "min_length",
    "min_tokens",
    "num_return_sequences",
)
_OF_TEXT: Final = (
    tensors.TEXT_INPUT,
    tensors.MESSAGES,
    tensors.TEXT_OUTPUT,
    "exclude_input_in_output",
    "stop_words",
    "prompt_logprobs",
)
"""Tensors of models with a tokenizer, and prompt_logprobs, which this backend lacks."""


def has_tokenizer(version_dir: Path) -> bool:
    """Return whether the folder has a tokenizer next to the model."""
    return any((version_dir / name).is_file() for name in TOKENIZER_FILES)


def completed(config: ModelConfig, *, has_tokenizer: bool) -> ModelConfig:
    """Return a copy of `config` with inputs and outputs where it has none, and decoupled unless it says otherwise."""
    missing = ("prompt_logprobs",) if has_tokenizer else _OF_TEXT
    inputs = {**tensors.INPUTS, **{name: tensors.PLAIN_INPUTS[name] for name in _PLAIN}}
    return tensors.completed(
        config,
        inputs={} if config.input else _without(inputs, missing),
        outputs={} if config.output else _without(tensors.OUTPUTS, missing),
    )


def _without(every: tensors.Tensors, names: tuple[str, ...]) -> tensors.Tensors:
    retained: Mapping[str, tuple[str, tuple[int, ...]]] = {
        name: tensor for name, tensor in every.items() if name not in names
    }
    return retained

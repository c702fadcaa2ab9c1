"""The tensors of a model: those of the contract that it can take and give."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.language import tensors

TOKENIZER_FILES: Final = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
_OF_TEXT: Final = frozenset(
    (
        *(tensors.TEXT_INPUT, tensors.MESSAGES, tensors.TEXT_OUTPUT),
        *("exclude_input_in_output", "stop_words", "bad_words"),
    )
)
"""Tensors of models with a tokenizer."""


def has_tokenizer(folder: Path) -> bool:
    """Return whether a folder has a tokenizer."""
    return any((folder / name).is_file() for name in TOKENIZER_FILES)


def completed(config: ModelConfig, lacking: Collection[str], *, has_tokenizer: bool) -> ModelConfig:
    """Return a copy of `config` with inputs and outputs where it has none, and decoupled unless it says otherwise.

    `lacking` are the tensors that the backend has not.
    """
    missing = frozenset(lacking) | (frozenset() if has_tokenizer else _OF_TEXT)
    inputs = {**tensors.INPUTS, **tensors.PLAIN_INPUTS}
    return tensors.completed(
        config,
        inputs={} if config.input else _without(inputs, missing),
        outputs={} if config.output else _without(tensors.OUTPUTS, missing),
    )


def _without(every: tensors.Tensors, names: Collection[str]) -> tensors.Tensors:
    return {name: tensor for name, tensor in every.items() if name not in names}

"""The tensors of a model: those of the contract that it can take and give."""

from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.language import tensors

_OF_TEXT: Final = (
    tensors.TEXT_INPUT,
    tensors.MESSAGES,
    tensors.TEXT_OUTPUT,
    "exclude_input_in_output",
    "stop_words",
    "bad_words",
)
"""Tensors of models with a tokenizer."""
_LACKING: Final = ("prompt_logprobs",)


def completed(config: ModelConfig, *, has_tokenizer: bool) -> ModelConfig:
    """Return a copy of `config` with inputs and outputs where it has none, and decoupled unless it says otherwise."""
    missing = _LACKING if has_tokenizer else (*_LACKING, *_OF_TEXT)
    inputs = {**tensors.INPUTS, **tensors.PLAIN_INPUTS}
    return tensors.completed(
        config,
        inputs={} if config.input else _without(inputs, missing),
        outputs={} if config.output else _without(tensors.OUTPUTS, missing),
    )


def _without(every: tensors.Tensors, names: tuple[str, ...]) -> tensors.Tensors:
    return {name: tensor for name, tensor in every.items() if name not in names}

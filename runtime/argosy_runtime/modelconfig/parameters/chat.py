"""Pipelines as chat models: the parameter `chat` of a configuration names the tensor of each part of a chat.

A JSON object, such as `{"prompt": "question", "text": "answer"}`: the keys are the attributes of `ChatTensors`, the
values names of inputs and outputs. Language models do not need it, since their tensors have fixed names.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig

from argosy_runtime.modelconfig.errors import ConfigError, Violation

PARAMETER: Final = "chat"
_TEXT = ("TYPE_STRING",)
_FLAG = ("TYPE_BOOL",)
_COUNT = ("TYPE_INT32", "TYPE_INT64", "TYPE_UINT32", "TYPE_UINT64")
INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "prompt": _TEXT,
    "system": _TEXT,
    "messages": _TEXT,
    "sampling_parameters": _TEXT,
    "max_tokens": _COUNT,
    "stream": _FLAG,
}
"""Data types that the input of each part may have."""
OUTPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": _TEXT,
    "refused": _FLAG,
    "finish_reason": _TEXT,
    "prompt_tokens": _COUNT,
    "completion_tokens": _COUNT,
}
"""Data types that the output of each part may have."""


@dataclass(frozen=True, slots=True)
class DeclaredTensor:
    """A tensor as configurations declare it; `datatype` by its name in ModelConfig, such as TYPE_STRING."""

    datatype: str
    dims: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ChatTensors:
    """The names of the tensors of a chat; empty where the pipeline has none.

    Inputs: `prompt` gets the text of the last user message, `system` that of the system messages, `messages` the
    request's messages as JSON, `sampling_parameters` a JSON object, `max_tokens` a number, `stream` whether the text is
    to come in pieces. Outputs: `text` (pieces that joined are the answer), `refused`, `finish_reason`,
    `prompt_tokens`, and `completion_tokens` of this response, which are added up.
    """

    text: str
    prompt: str = ""
    system: str = ""
    messages: str = ""
    sampling_parameters: str = ""
    max_tokens: str = ""
    stream: str = ""
    refused: str = ""
    finish_reason: str = ""
    prompt_tokens: str = ""
    completion_tokens: str = ""


_KEYS: Final = frozenset(field.name for field in fields(ChatTensors))


def chat_tensors(config: ModelConfig) -> ChatTensors | None:
    """Return the tensors that the parameter `chat` names; None without it.

    Raises ConfigError for anything but a JSON object of names.
    """
    if PARAMETER not in config.parameters:
        return None
    text = config.parameters[PARAMETER].string_value
    try:
        names = json.loads(text)
    except ValueError:
        raise ConfigError(f"parameter '{PARAMETER}' is no JSON: {text!r}") from None
    if not isinstance(names, dict) or not all(isinstance(name, str) and name for name in names.values()):
        raise ConfigError(f"parameter '{PARAMETER}' must be a JSON object of tensor names; found {text!r}")
    unknown = sorted(names.keys() - _KEYS)
    if unknown:
        raise ConfigError(f"parameter '{PARAMETER}' has no '{unknown[0]}'; its keys are {', '.join(sorted(_KEYS))}")
    if "text" not in names:
        raise ConfigError(f"parameter '{PARAMETER}' needs 'text': the output with the answer")
    return ChatTensors(**names)


def chat_faults(
    chat: ChatTensors, inputs: Mapping[str, DeclaredTensor], outputs: Mapping[str, DeclaredTensor]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with `chat` for these tensors: the key, and a message. Tensors that are not declared (an
    empty map) are not checked.
    """
    if not chat.prompt and not chat.messages:
        yield "", "needs prompt or messages: the input that takes the user's message"
    for side, types, tensors in (("input", INPUTS, inputs), ("output", OUTPUTS, outputs)):
        for key, datatypes in types.items():
            name = getattr(chat, key)
            if name and tensors:
                yield from ((key, message) for message in _tensor_faults(side, name, tensors.get(name), datatypes))
    used = {getattr(chat, key) for key in INPUTS}
    for name, tensor in inputs.items():
        if not tensor.optional and name not in used:
            yield "", f"gives no value to input '{name}', which requests must have; make it optional"


def check_chat(config: ModelConfig) -> Iterator[Violation]:
    """Check the parameter `chat` against the tensors of a complete configuration."""
    path = f'parameters["{PARAMETER}"]'
    try:
        chat = chat_tensors(config)
    except ConfigError as error:
        yield Violation(path, f"{error} for model '{config.name}'")
        return
    if chat is not None:
        inputs = {
            tensor.name: DeclaredTensor(DataType.Name(tensor.data_type), tuple(tensor.dims), tensor.optional)
            for tensor in config.input
        }
        outputs = {
            tensor.name: DeclaredTensor(DataType.Name(tensor.data_type), tuple(tensor.dims)) for tensor in config.output
        }
        for key, message in chat_faults(chat, inputs, outputs):
            where = f"'{PARAMETER}.{key}'" if key else f"'{PARAMETER}'"
            yield Violation(path, f"parameter {where} {message} for model '{config.name}'")


def _tensor_faults(side: str, name: str, tensor: DeclaredTensor | None, datatypes: tuple[str, ...]) -> Iterator[str]:
    if tensor is None:
        yield f"names '{name}', which is no {side}"
        return
    if tensor.datatype not in datatypes:
        yield f"names {side} '{name}' of {tensor.datatype}; expected {' or '.join(datatypes)}"
    if any(dim not in (1, -1) for dim in tensor.dims):
        yield f"names {side} '{name}' of dims {list(tensor.dims)}; expected one element, such as [1]"

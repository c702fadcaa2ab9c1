"""A model or an ensemble as a chat model of OpenAI's API."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Rule
from argosy.api.values.tensors import InputTensor, OutputTensor, Tensor
from argosy_runtime.modelconfig.parameters.chat import PARAMETER, ChatTensors, DeclaredTensor, chat_faults

TensorName = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class Chat(ApiModel):
    """The tensors of a chat, by name. Each is one element: TYPE_STRING, TYPE_BOOL or a whole number."""

    text: TensorName = Field(
        description="The output (TYPE_STRING) with the answer; if responses are several, with the text that is new."
    )
    prompt: TensorName | None = Field(
        default=None,
        description="The input (TYPE_STRING) for the text of the last user message. Earlier messages are not passed on "
        "by it. Required, unless messages is set.",
    )
    messages: TensorName | None = Field(
        default=None,
        description="The input (TYPE_STRING) for all messages, as a JSON list in OpenAI's form. Default: none.",
    )
    system: TensorName | None = Field(
        default=None,
        description="The input (TYPE_STRING) for the text of system messages. Default: with messages they are part of "
        "those, else requests with a system message are refused.",
    )
    sampling_parameters: TensorName | None = Field(
        default=None,
        description="The input (TYPE_STRING) for a JSON object with the parameters of sampling, by vLLM's names, such "
        "as temperature. Default: requests that set one are refused.",
    )
    max_tokens: TensorName | None = Field(
        default=None,
        description="The input (a whole number) for the largest number of tokens in the answer. Default: requests that "
        "set it are refused.",
    )
    stream: TensorName | None = Field(
        default=None,
        description="The input (TYPE_BOOL) that requests an answer in pieces. Default: streams have the pieces that "
        "the model sends.",
    )
    refused: TensorName | None = Field(
        default=None,
        description="The output (TYPE_BOOL) that ends an answer with finish_reason content_filter. Default: none.",
    )
    finish_reason: TensorName | None = Field(
        default=None,
        description="The output (TYPE_STRING) with the reason of the end, stop or length. Default: stop is reported.",
    )
    prompt_tokens: TensorName | None = Field(
        default=None,
        description="The output (a whole number) with the number of the prompt's tokens. Default: usage is not "
        "reported.",
    )
    completion_tokens: TensorName | None = Field(
        default=None,
        description="The output (a whole number) with the number of tokens that a response adds to the answer; those "
        "of a stream are summed. Default: usage is not reported.",
    )

    @property
    def tensors(self) -> ChatTensors:
        """The declaration as servers read it."""
        return ChatTensors(**self.names)

    @property
    def names(self) -> dict[str, str]:
        """The names that are set, by the key of the server's parameter."""
        return {key: name for key, name in self.model_dump().items() if name is not None}


def chat_rule() -> Rule:
    """Return the rule that `chat` names tensors of the right types and gives each required input a value."""
    return Rule(("chat", "inputs", "outputs", "config"), _faults)


def _faults(spec: Any) -> Iterator[Fault]:
    chat: Chat | None = spec.chat
    if chat is None:
        return
    if PARAMETER in spec.config.get("parameters", {}):
        yield Fault("is decided by spec.chat; set that instead", ("config", "parameters", PARAMETER))
    for key, message in chat_faults(chat.tensors, _declared(spec.inputs), _declared(spec.outputs)):
        alias = Chat.model_fields[key].alias if key else None
        yield Fault(message, ("chat", alias) if alias else ("chat",))


def _declared(tensors: Sequence[InputTensor] | Sequence[OutputTensor]) -> dict[str, DeclaredTensor]:
    return {tensor.name: DeclaredTensor(str(tensor.data_type), tensor.dims, _is_optional(tensor)) for tensor in tensors}


def _is_optional(tensor: Tensor) -> bool:
    return isinstance(tensor, InputTensor) and tensor.optional

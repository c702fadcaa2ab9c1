"""The body of a request to /v1/chat/completions."""

from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.json import Decoder

from argosy_runtime.protocol.openai.errors import ApiError, invalid
from argosy_runtime.protocol.openai.validation import decode as decode_fields
from argosy_runtime.tensors import Data

from .fields import MOST_LOGPROBS, Effort, GenerationFields, Level, NotNegative, Positive
from .messages import Message
from .rules import check
from .tools import Tool, ToolChoice

MOST_TOOLS = 128
MetadataValue = Annotated[str, Meta(max_length=512)]


class ChatRequest(GenerationFields, kw_only=True):
    """A request to answer a chat."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MOST_LOGPROBS)] | None = None
    max_completion_tokens: Positive | None = None
    max_tokens: Positive | None = None
    tools: Annotated[list[Tool], Meta(max_length=MOST_TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    # How a prompt is made of the chat.
    reasoning_effort: Effort | None = None
    verbosity: Level | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    # Without effect on an answer, here as there.
    metadata: dict[str, MetadataValue] | None = None
    store: bool | None = None
    safety_identifier: Annotated[str, Meta(max_length=128)] | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast"] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    prediction: dict[str, Any] | None = None
    # What models of text cannot do.
    modalities: list[Literal["text", "audio"]] | None = None
    audio: dict[str, Any] | None = None
    moderation: dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None
    # The form of tools before there were tools.
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None

    @property
    def most_tokens(self) -> NotNegative | None:
        """The most tokens to generate; None is as many as the model's context has room for."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def requested_logprobs(self) -> int | None:
        """The number of alternatives to return for each token, None where no probabilities are requested."""
        return (self.top_logprobs or 0) if self.logprobs else None


_DECODER = Decoder(ChatRequest)
_MOST_PAIRS = 16
_LONGEST_KEY = 64


def decode(body: Data) -> ChatRequest:
    """Return the request in a body. Raises ApiError."""
    request = decode_fields(_DECODER, body)
    check(request)
    if request.top_logprobs is not None and not request.logprobs:
        message = "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."
        raise invalid(message, "top_logprobs", "invalid_parameter_combination")
    if request.add_generation_prompt and request.continue_final_message:
        message = (
            "'continue_final_message' and 'add_generation_prompt' exclude each other: the model either goes on with "
            "the last message or begins its own."
        )
        raise invalid(message, "continue_final_message", "invalid_parameter_combination")
    _check_abilities(request)
    _check_metadata(request.metadata or {})
    return request


def _check_abilities(request: ChatRequest) -> None:
    if "audio" in (request.modalities or ()):
        raise _unsupported("modalities", "models of this server answer with text alone: leave 'audio' out")
    if request.audio is not None:
        raise _unsupported("audio", "models of this server answer with text alone")
    if request.web_search_options is not None:
        raise _unsupported("web_search_options", "this server does not search the web")
    for name in ("functions", "function_call"):
        if getattr(request, name) is not None:
            raise _unsupported(name, "use 'tools' and 'tool_choice', which replace it")
    if request.moderation is not None:
        raise _unsupported("moderation", "this server has no moderation model")


def _unsupported(name: str, why: str) -> ApiError:
    return invalid(f"'{name}' is not supported: {why}.", name, "unsupported_parameter")


def _check_metadata(metadata: dict[str, str]) -> None:
    if len(metadata) > _MOST_PAIRS:
        message = f"Invalid 'metadata': too many properties. Expected at most {_MOST_PAIRS}, but got {len(metadata)}."
        raise invalid(message, "metadata", "object_above_max_properties")
    for name in metadata:
        if len(name) > _LONGEST_KEY:
            message = f"Invalid 'metadata': a key is longer than {_LONGEST_KEY} characters."
            raise invalid(message, "metadata", "invalid_value")

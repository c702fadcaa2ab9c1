"""The body of a request to /v1/responses, field by field."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.json import Decoder

from argosy_runtime.protocol.openai.errors import invalid
from argosy_runtime.protocol.openai.validation import decode as decode_fields
from argosy_runtime.tensors import Data

from .chat import MOST_TOOLS, MetadataValue
from .fields import MOST_LOGPROBS, Effort, JsonObjectFormat, Level, Positive, Text, TextFormat
from .tools import FunctionName

LOGPROBS = "message.output_text.logprobs"


class SchemaFormat(Struct, tag_field="type", tag="json_schema", forbid_unknown_fields=True):
    """JSON that a named schema describes."""

    name: Annotated[str, Meta(pattern="^[a-zA-Z0-9_-]{1,64}$")]
    schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


class TextOptions(Struct, forbid_unknown_fields=True):
    """The form of the text."""

    format: TextFormat | JsonObjectFormat | SchemaFormat | None = None
    verbosity: Level | None = None


class Reasoning(Struct, forbid_unknown_fields=True):
    """How much a model is to reason."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None


class Function(Struct, tag_field="type", tag="function", forbid_unknown_fields=True):
    """A function that the model may call."""

    name: FunctionName
    parameters: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class ToolChoiceFunction(Struct, tag_field="type", tag="function", forbid_unknown_fields=True):
    """The choice of one function."""

    name: str


class AllowedFunctions(Struct, tag_field="type", tag="allowed_tools", forbid_unknown_fields=True):
    """The choice among some of the functions."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[ToolChoiceFunction], Meta(min_length=1)]


class ResponseStreamOptions(Struct, forbid_unknown_fields=True):
    """Options of a stream."""

    include_obfuscation: bool | None = None


class ResponseRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A request for a response. What needs a state of the server is refused."""

    model: Text
    input: str | Annotated[list[dict[str, Any]], Meta(min_length=1)]
    instructions: str | None = None
    max_output_tokens: Positive | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MOST_LOGPROBS)] | None = None
    include: list[str] | None = None
    text: TextOptions | None = None
    reasoning: Reasoning | None = None
    tools: Annotated[list[Function], Meta(max_length=MOST_TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolChoiceFunction | AllowedFunctions | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    truncation: Literal["disabled", "auto"] | None = None
    # Without effect on an answer, here as there.
    metadata: dict[str, MetadataValue] | None = None
    user: str | None = None
    safety_identifier: Annotated[str, Meta(max_length=128)] | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast"] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    # What would need a state.
    store: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    prompt: dict[str, Any] | None = None
    context_management: list[dict[str, Any]] | None = None
    max_tool_calls: int | None = None
    background_options: dict[str, Any] | None = None
    # What models of text cannot do.
    moderation: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    access_programs: Any = None

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream of events."""
        return self.stream is True

    @property
    def obfuscates(self) -> bool:
        """Whether a stream's events are padded."""
        return self.stream_options is not None and self.stream_options.include_obfuscation is True

    @property
    def requested_logprobs(self) -> int | None:
        """The number of alternatives to return for each token, None where no probabilities are requested."""
        return (self.top_logprobs or 0) if LOGPROBS in (self.include or ()) or self.top_logprobs else None


_DECODER = Decoder(ResponseRequest)
_UNSUPPORTED = {
    "store": "keeps no responses",
    "background": "runs nothing after an answer",
    "previous_response_id": "keeps no responses: send all items as 'input'",
    "conversation": "keeps no conversations: send all items as 'input'",
    "prompt": "keeps no prompt templates",
    "context_management": "compacts no conversations",
    "max_tool_calls": "calls no tools by itself",
    "background_options": "runs nothing after an answer",
    "moderation": "has no moderation model",
    "image": "makes no images",
    "access_programs": "has no programs of access",
}
_INCLUDED = frozenset({LOGPROBS, "reasoning.encrypted_content"})


def decode(body: Data) -> ResponseRequest:
    """Return the request in a body. Raises ApiError."""
    request = decode_fields(_DECODER, body)
    for name, why in _UNSUPPORTED.items():
        if getattr(request, name) not in (None, False):
            raise invalid(f"'{name}' is not supported: this server {why}.", name, "unsupported_parameter")
    if request.truncation == "auto":
        message = "'truncation' is not supported as 'auto': this server leaves no items out."
        raise invalid(message, "truncation", "unsupported_value")
    if request.reasoning is not None and (request.reasoning.summary or request.reasoning.generate_summary):
        message = "'reasoning.summary' is not supported: this server summarizes no reasoning."
        raise invalid(message, "reasoning.summary", "unsupported_parameter")
    for name in request.include or ():
        if name not in _INCLUDED:
            raise invalid(f"Invalid value for 'include': '{name}' is of no tool here.", "include", "invalid_value")
    return request

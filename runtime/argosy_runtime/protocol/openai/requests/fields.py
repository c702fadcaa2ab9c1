"""The fields that chat completions and completions share: of sampling, of streaming, and those without effect here."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from argosy_runtime.language import StructuredOutputs

INT64_MAX = 2**63 - 1

Positive = Annotated[int, Meta(ge=1, le=INT64_MAX)]
NotNegative = Annotated[int, Meta(ge=0, le=INT64_MAX)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=INT64_MAX)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Bias = Annotated[float, Meta(ge=-100, le=100)]
TokenIds = Annotated[list[NotNegative], Meta(max_length=1024)]
Text = Annotated[str, Meta(min_length=1)]

MOST_CHOICES = 128
MOST_STOPS = 16
MOST_LOGPROBS = 20


class StreamOptions(Struct, forbid_unknown_fields=True):
    """Options of a stream. `include_obfuscation`: events are padded, so that their sizes tell less of their text."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class JsonSchema(Struct, forbid_unknown_fields=True):
    """A named JSON schema."""

    name: Annotated[str, Meta(pattern="^[a-zA-Z0-9_-]{1,64}$")]
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class TextFormat(Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    """Plain text."""


class JsonObjectFormat(Struct, tag_field="type", tag="json_object", forbid_unknown_fields=True):
    """Any JSON object."""


class JsonSchemaFormat(Struct, tag_field="type", tag="json_schema", forbid_unknown_fields=True):
    """JSON that a schema describes."""

    json_schema: JsonSchema


ResponseFormat = TextFormat | JsonObjectFormat | JsonSchemaFormat


class GenerationFields(Struct, kw_only=True, forbid_unknown_fields=True):
    """Fields of every request that generates text. None is the model's default.

    From `top_k` on they are vLLM's extensions.
    """

    model: Text
    frequency_penalty: Penalty | None = None
    logit_bias: dict[str, Bias] | None = None
    n: Annotated[int, Meta(ge=1, le=MOST_CHOICES)] | None = None
    presence_penalty: Penalty | None = None
    response_format: ResponseFormat | None = None
    seed: Int64 | None = None
    stop: str | Annotated[list[str], Meta(max_length=MOST_STOPS)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    user: str | None = None
    top_k: Annotated[int, Meta(ge=-1, le=INT64_MAX)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Meta(gt=0)] | None = None
    min_tokens: NotNegative | None = None
    ignore_eos: bool | None = None
    stop_token_ids: TokenIds | None = None
    include_stop_str_in_output: bool | None = None
    skip_special_tokens: bool | None = None
    spaces_between_special_tokens: bool | None = None
    truncate_prompt_tokens: Annotated[int, Meta(ge=-1, le=INT64_MAX)] | None = None
    allowed_token_ids: list[NotNegative] | None = None
    bad_words: list[str] | None = None
    structured_outputs: StructuredOutputs | None = None
    priority: Int64 | None = None
    cache_salt: Annotated[str, Meta(min_length=1, max_length=1024)] | None = None

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream of events."""
        return self.stream is True

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with an event that counts tokens."""
        return self.stream_options is not None and self.stream_options.include_usage is True

    @property
    def obfuscates(self) -> bool:
        """Whether a stream's events are padded."""
        return self.stream_options is not None and self.stream_options.include_obfuscation is True


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Level = Literal["low", "medium", "high"]

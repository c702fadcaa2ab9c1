"""The messages of a chat, by the role of their author, and their parts."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from .fields import Text


class TextPart(Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    """A piece of text."""

    text: str
    prompt_cache_breakpoint: dict[str, Any] | None = None


class RefusalPart(Struct, tag_field="type", tag="refusal", forbid_unknown_fields=True):
    """What a model said where it refused to answer."""

    refusal: str


class ImagePart(Struct, tag_field="type", tag="image_url", forbid_unknown_fields=True):
    """An image, which models of text cannot read."""

    image_url: dict[str, Any]
    prompt_cache_breakpoint: dict[str, Any] | None = None


class AudioPart(Struct, tag_field="type", tag="input_audio", forbid_unknown_fields=True):
    """A sound, which models of text cannot hear."""

    input_audio: dict[str, Any]
    prompt_cache_breakpoint: dict[str, Any] | None = None


class FilePart(Struct, tag_field="type", tag="file", forbid_unknown_fields=True):
    """A file, which models of text cannot read."""

    file: dict[str, Any]
    prompt_cache_breakpoint: dict[str, Any] | None = None


TextContent = str | Annotated[list[TextPart], Meta(min_length=1)]
UserContent = str | Annotated[list[TextPart | ImagePart | AudioPart | FilePart], Meta(min_length=1)]
AssistantContent = str | Annotated[list[TextPart | RefusalPart], Meta(min_length=1)]


class CalledFunction(Struct, forbid_unknown_fields=True):
    """A function that a model called: its name, and its arguments as the JSON that the model wrote."""

    name: str
    arguments: str


class FunctionCall(Struct, tag_field="type", tag="function", forbid_unknown_fields=True):
    """A call of a function tool."""

    id: str
    function: CalledFunction


class CalledCustom(Struct, forbid_unknown_fields=True):
    """A custom tool that a model called, with its input as plain text."""

    name: str
    input: str


class CustomCall(Struct, tag_field="type", tag="custom", forbid_unknown_fields=True):
    """A call of a custom tool."""

    id: str
    custom: CalledCustom


class SystemMessage(Struct, tag_field="role", tag="system", forbid_unknown_fields=True):
    """Instructions to the model."""

    content: TextContent
    name: str | None = None


class DeveloperMessage(Struct, tag_field="role", tag="developer", forbid_unknown_fields=True):
    """Instructions to the model, by their later name."""

    content: TextContent
    name: str | None = None


class UserMessage(Struct, tag_field="role", tag="user", forbid_unknown_fields=True):
    """What a user says."""

    content: UserContent
    name: str | None = None


class AssistantMessage(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True):
    """What a model answered before. Clients return answers whole, so that fields of answers are accepted too."""

    content: AssistantContent | None = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: list[FunctionCall | CustomCall] | None = None
    function_call: CalledFunction | None = None
    audio: dict[str, Any] | None = None
    annotations: list[dict[str, Any]] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class ToolMessage(Struct, tag_field="role", tag="tool", forbid_unknown_fields=True):
    """The result of a tool."""

    content: TextContent
    tool_call_id: Text
    name: str | None = None


class FunctionMessage(Struct, tag_field="role", tag="function", forbid_unknown_fields=True):
    """The result of a function, in the form before there were tools."""

    content: str | None
    name: str


Message = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage

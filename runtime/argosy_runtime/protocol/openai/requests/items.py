"""The items of a response's input, as the messages of a chat."""

from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from argosy_runtime.protocol.openai.errors import ApiError, invalid

from .messages import (
    AssistantMessage,
    CalledFunction,
    DeveloperMessage,
    FunctionCall,
    Message,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)

Status = Literal["in_progress", "completed", "incomplete"]


class InputText(Struct, tag_field="type", tag="input_text", forbid_unknown_fields=True):
    """A piece of text for the model."""

    text: str
    prompt_cache_breakpoint: dict[str, Any] | None = None


class OutputText(Struct, tag_field="type", tag="output_text", forbid_unknown_fields=True):
    """A piece of text that a model wrote."""

    text: str
    annotations: list[dict[str, Any]] | None = None
    logprobs: list[dict[str, Any]] | None = None


class Refusal(Struct, tag_field="type", tag="refusal", forbid_unknown_fields=True):
    """What a model wrote where it refused to answer."""

    refusal: str


class InputImage(Struct, tag_field="type", tag="input_image"):
    """An image, which models of text cannot read."""


class InputFile(Struct, tag_field="type", tag="input_file"):
    """A file, which models of text cannot read."""


Part = InputText | OutputText | Refusal | InputImage | InputFile


class MessageItem(Struct, forbid_unknown_fields=True):
    """A message. `phase` has no effect."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | Annotated[list[Part], Meta(min_length=1)]
    type: Literal["message"] = "message"
    id: str | None = None
    status: Status | None = None
    phase: str | None = None


class CallItem(Struct, forbid_unknown_fields=True):
    """A call of a function that a model made."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: Status | None = None
    namespace: str | None = None


class CallOutputItem(Struct, forbid_unknown_fields=True):
    """The result of a call."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | list[Part]
    id: str | None = None
    status: Status | None = None


Item = MessageItem | CallItem | CallOutputItem
Kind = TypeVar("Kind", bound=Struct)
_TYPES: Final[dict[str, type[Item]]] = {
    "message": MessageItem,
    "function_call": CallItem,
    "function_call_output": CallOutputItem,
}


def messages(content: str | list[dict[str, Any]], instructions: str | None) -> list[Message]:
    """Return the messages of a chat that an input is. Raises ApiError that names the item at fault."""
    result: list[Message] = [SystemMessage(instructions)] if instructions is not None else []
    if isinstance(content, str):
        return [*result, UserMessage(content)]
    for at, fields in enumerate(content):
        _append(result, _item(fields, f"input[{at}]"), f"input[{at}]")
    return result


def _item(fields: dict[str, Any], where: str) -> Item:
    kind = fields.get("type", "message")
    declared = _TYPES.get(kind) if isinstance(kind, str) else None
    if declared is None:
        message = f"Invalid value for '{where}.type': {kind!r}. Supported values are: {', '.join(map(repr, _TYPES))}."
        raise invalid(message, f"{where}.type", "invalid_value")
    try:
        return msgspec.convert(fields, declared)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        param = f"{where}{path.removesuffix('`')}"
        raise invalid(f"Invalid '{param}': {what}.", param, "invalid_value") from None


def _append(result: list[Message], item: Item, where: str) -> None:
    if isinstance(item, CallOutputItem):
        output = item.output if isinstance(item.output, str) else _text(item.output, f"{where}.output")
        result.append(ToolMessage(output, item.call_id))
    elif isinstance(item, CallItem):
        call = FunctionCall(item.call_id, CalledFunction(item.name, item.arguments))
        last = result[-1] if result else None
        if not isinstance(last, AssistantMessage):  # calls belong to the message before them
            last = AssistantMessage()
            result.append(last)
        last.tool_calls = [*(last.tool_calls or ()), call]
    elif item.role == "assistant":
        result.append(AssistantMessage(_assistant(item.content, f"{where}.content")))
    else:
        content = item.content if isinstance(item.content, str) else _text(item.content, f"{where}.content")
        result.append(_ROLES[item.role](content))


_ROLES: Final[dict[str, type[UserMessage] | type[SystemMessage] | type[DeveloperMessage]]] = {
    "user": UserMessage,
    "system": SystemMessage,
    "developer": DeveloperMessage,
}


def _assistant(content: str | list[Part], where: str) -> str | list[TextPart | RefusalPart]:
    if isinstance(content, str):
        return content
    return [
        RefusalPart(part.refusal) if isinstance(part, Refusal) else TextPart(_text([part], where)) for part in content
    ]


def _text(parts: list[Part], where: str) -> str:
    return "\n".join(_of_part(part, f"{where}[{at}]") for at, part in enumerate(parts))


def _of_part(part: Part, where: str) -> str:
    if isinstance(part, InputText | OutputText):
        return part.text
    raise _not_text(part, where)


def _not_text(part: Part, where: str) -> ApiError:
    kind = part.__struct_config__.tag
    message = f"Invalid content type: '{where}' is of type '{kind}', and models of this server read text alone."
    return invalid(message, where, "unsupported_content_type")

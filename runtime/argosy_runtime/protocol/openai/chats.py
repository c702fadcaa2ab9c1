"""Chats as language models take them: messages whose content is text, and what their template is told."""

from typing import Any

import msgspec

from .errors import ApiError, invalid
from .requests.chat import ChatRequest
from .requests.messages import (
    AssistantMessage,
    DeveloperMessage,
    FunctionMessage,
    Message,
    RefusalPart,
    TextPart,
    ToolMessage,
)
from .tools.use import tool_documents, tool_use


def chat_document(request: ChatRequest) -> bytes:
    """Return the JSON object for the input messages. Raises ApiError where a part is not text."""
    document: dict[str, Any] = {"messages": [message_document(item, at) for at, item in enumerate(request.messages)]}
    if request.add_generation_prompt is not None:
        document["add_generation_prompt"] = request.add_generation_prompt
    if request.continue_final_message:
        document["continue_final_message"] = True
        document["add_generation_prompt"] = False
    use = tool_use(request)
    if use is not None:
        document["tools"] = tool_documents(use)
    keywords = _template_keywords(request)
    if keywords:
        document["chat_template_kwargs"] = keywords
    return msgspec.json.encode(document)


def _template_keywords(request: ChatRequest) -> dict[str, Any]:
    """Return the variables for the template; of a reasoning effort it learns by the names that templates use."""
    keywords: dict[str, Any] = {}
    if request.reasoning_effort is not None:
        keywords["reasoning_effort"] = request.reasoning_effort
        keywords["enable_thinking"] = request.reasoning_effort != "none"
    if request.verbosity is not None:
        keywords["verbosity"] = request.verbosity
    return {**keywords, **(request.chat_template_kwargs or {})}


def message_document(message: Message, at: int) -> dict[str, Any]:
    """Return a message as templates read it; `at` is its place in the chat. Raises ApiError."""
    where = f"messages[{at}]"
    if isinstance(message, DeveloperMessage):
        # Templates know these instructions by their first name.
        document = {"role": "system", "content": _text(message.content, where)}
    elif isinstance(message, FunctionMessage):
        return {"role": "tool", "content": message.content or "", "name": message.name}
    elif isinstance(message, AssistantMessage):
        document = _assistant(message, where)
    else:
        document = {"role": str(message.__struct_config__.tag), "content": _text(message.content, where)}
    if isinstance(message, ToolMessage):
        document["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        document["name"] = message.name
    return document


def _assistant(message: AssistantMessage, where: str) -> dict[str, Any]:
    calls: list[dict[str, Any]] = [msgspec.to_builtins(call) for call in message.tool_calls or ()]
    if message.function_call is not None:
        calls.append({"type": "function", "function": msgspec.to_builtins(message.function_call)})
    text = message.refusal if message.content is None else _text(message.content, where)
    if text is None and not calls:
        raise invalid(
            f"Missing required parameter: '{where}.content': an assistant's message has content or tool calls.",
            f"{where}.content",
            "missing_required_parameter",
        )
    document: dict[str, Any] = {"role": "assistant", "content": text or ""}
    if calls:
        document["tool_calls"] = calls
    reasoning = message.reasoning_content if message.reasoning is None else message.reasoning
    if reasoning is not None:
        document["reasoning_content"] = reasoning
    return document


def _text(content: Any, where: str) -> str:
    """Return the text of a content: parts are lines."""
    if isinstance(content, str):
        return content
    lines: list[str] = []
    for at, part in enumerate(content):
        if isinstance(part, TextPart):
            lines.append(part.text)
        elif isinstance(part, RefusalPart):
            lines.append(part.refusal)
        else:
            raise _not_text(part, f"{where}.content[{at}]")
    return "\n".join(lines)


def _not_text(part: Any, where: str) -> ApiError:
    kind = part.__struct_config__.tag
    message = f"Invalid content type: '{where}' is of type '{kind}', and models of this server read text alone."
    return invalid(message, where, "unsupported_content_type")

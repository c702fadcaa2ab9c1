"""Chats: messages in OpenAI's form, and the prompt that a tokenizer's template makes of them."""

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from argosy_runtime.errors import ErrorKind, ServingError, internal, invalid

from .interruption import Interrupted, interrupted_after

LONGEST_SECONDS: Final = 5.0
"""Time after which a template counts as endless."""
LONGEST_PROMPT: Final = 64 << 20
"""Characters of a prompt, far beyond any context."""
_RESERVED: Final = {
    "messages",
    "conversation",
    "tools",
    "chat_template",
    "add_generation_prompt",
    "continue_final_message",
    "tokenize",
    "sanitize_control_tokens",
    "padding",
    "truncation",
    "max_length",
    "return_tensors",
    "return_dict",
    "return_assistant_tokens_mask",
    "tokenizer_kwargs",
}
"""Names that the tokenizer takes for arguments of its own, or gives the template itself."""
TRUST_REQUESTS: Final = "trust_request_chat_template"
"""The model's parameter that lets requests bring a chat template."""


class Chat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A chat. `messages` and `tools` are OpenAI's objects. `chat_template` replaces the tokenizer's own one."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] = {}
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template: str | None = None

    @classmethod
    def read(cls, text: bytes) -> "Chat":
        """Return the chat of a JSON object. Raises ServingError (INVALID_ARG)."""
        try:
            chat = _decoder.decode(text)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise invalid(f"input 'messages' is not a chat: {error}") from error
        if not chat.messages:
            raise invalid("input 'messages' is not a chat: 'messages' is empty")
        if chat.continue_final_message and chat.add_generation_prompt:
            raise invalid(
                "input 'messages' is not a chat: 'continue_final_message' needs 'add_generation_prompt' to be false"
            )
        return chat

    def packed(self) -> bytes:
        """Return the JSON object that `read` reads."""
        return _encoder.encode(self)


_decoder: Final = msgspec.json.Decoder(Chat)
_encoder: Final = msgspec.json.Encoder()


class ChatTokenizer(Protocol):
    """What is needed of a tokenizer of the package transformers."""

    chat_template: Any

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """Return the rendered chat."""


class ChatTemplate:
    """The chat template of a model's tokenizer, None for a model without a tokenizer.

    `seconds` and `characters` limit one rendering. The template is a program: transformers runs it in a sandbox, which
    does not limit its time, and a single long operation cannot be interrupted. So templates of requests are refused
    unless the model `trusts_requests`.
    """

    def __init__(
        self,
        model: str,
        tokenizer: ChatTokenizer | None,
        seconds: float = LONGEST_SECONDS,
        characters: int = LONGEST_PROMPT,
        *,
        trusts_requests: bool = False,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._seconds = seconds
        self._characters = characters
        self._trusts_requests = trusts_requests

    def render(self, chat: Chat) -> str:
        """Return the prompt. Blocks up to the time limit; call it on any thread, but not on an event loop's.

        Raises ServingError: INVALID_ARG where the chat does not fit the template, brings one that is not trusted, or
        there is no template.
        """
        tokenizer = self._tokenizer
        if tokenizer is None:
            raise invalid(f"model '{self._model}' has no tokenizer, so it takes input_ids, not messages")
        if chat.chat_template is not None and not self._trusts_requests:
            raise invalid(
                f"model '{self._model}' takes no 'chat_template' in 'messages': leave it out, or set the model's "
                f"parameter '{TRUST_REQUESTS}' to true where every client is trusted"
            )
        if chat.chat_template is None and not getattr(tokenizer, "chat_template", None):
            raise invalid(
                f"model '{self._model}' has no chat template: send text_input, or add 'chat_template' to its "
                "tokenizer_config.json"
            )
        return self._rendered(
            lambda: tokenizer.apply_chat_template(*_arguments(chat, self._names(chat)), **_options(chat))
        )

    def _names(self, chat: Chat) -> str:
        """Return the text in which names of roles are looked for."""
        template = chat.chat_template or getattr(self._tokenizer, "chat_template", None)
        return template if isinstance(template, str) else str(template)

    def _rendered(self, render: Callable[[], Any]) -> str:
        about = f"the chat template of model '{self._model}'"
        try:
            with interrupted_after(self._seconds):
                prompt = render()
        except Interrupted:
            raise internal(f"{about} did not end within {self._seconds:g} s") from None
        except ServingError:
            raise
        except MemoryError:
            raise internal(f"{about} needs more memory than there is") from None
        except Exception as error:
            raise invalid(f"{about} refuses the messages: {type(error).__name__}: {error}") from error
        if not isinstance(prompt, str):
            raise internal(f"{about} made {type(prompt).__name__}, not text")
        if len(prompt) > self._characters:
            raise ServingError(
                ErrorKind.INVALID_ARG, f"{about} made {len(prompt)} characters, more than {self._characters}"
            )
        return prompt


def _arguments(chat: Chat, template: str) -> tuple[list[dict[str, Any]]]:
    return ([_message(message, template) for message in chat.messages],)


def _options(chat: Chat) -> dict[str, Any]:
    if clash := _RESERVED & chat.chat_template_kwargs.keys():
        raise invalid(
            f"'chat_template_kwargs' cannot have '{min(clash)}', which is no variable of its own: leave it out"
        )
    options = {
        **chat.chat_template_kwargs,
        "tools": chat.tools,
        "tokenize": False,
        "add_generation_prompt": chat.add_generation_prompt,
        "continue_final_message": chat.continue_final_message,
    }
    return options if chat.chat_template is None else {**options, "chat_template": chat.chat_template}


def _message(message: dict[str, Any], template: str) -> dict[str, Any]:
    """Return a message as templates expect it: its content a text, arguments of tools as objects.

    The role `developer` is `system` for templates that do not know it.
    """
    result = dict(message)
    if result.get("role") == "developer" and "developer" not in template:
        result["role"] = "system"
    if isinstance(result.get("content"), list):
        result["content"] = "\n".join(_part(part) for part in result["content"])
    if result.get("tool_calls"):
        result["tool_calls"] = [_tool_call(call) for call in result["tool_calls"]]
    return result


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text", part.get("refusal")) if isinstance(part, dict) else None
    if not isinstance(text, str):
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        raise invalid(f"a message's content has a part of type '{kind}', expected 'text'")
    return text


def _tool_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = msgspec.json.decode(function["arguments"] or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise invalid(f"a message's tool call has arguments that are not JSON: {error}") from error
    return {**call, "function": {**function, "arguments": arguments}}

"""Chats and their templates, as the tokenizers of transformers render them."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language import Chat, ChatTemplate

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
    "[{{ c.function.name }} {{ c.function.arguments['x'] }}]{% endfor %}{% endfor %}"
    "{% if tools %}{{ tools | length }} tools{% endif %}{% if loud %}!{% endif %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
USER = {"role": "user", "content": "Hi"}


class Tokenizer:
    """A tokenizer with a template, rendered by the functions of transformers."""

    def __init__(self, chat_template: str | None) -> None:
        self.chat_template = chat_template

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """Render, as transformers' tokenizers do."""
        from transformers.utils.chat_template_utils import render_jinja_template

        assert options.pop("tokenize") is False
        options.setdefault("chat_template", self.chat_template)
        (rendered,), _ = render_jinja_template([conversation], **options)
        return rendered


def render(chat: Chat, template: str | None = TEMPLATE, **limits: Any) -> str:
    """Return the prompt of a chat."""
    return ChatTemplate("llm", Tokenizer(template), trusts_requests=True, **limits).render(chat)


def test_a_template_of_a_request_is_refused_unless_the_model_trusts_requests() -> None:
    """One operation can hold the interpreter's lock for ever, so nothing could end it."""
    chat = Chat([USER], chat_template="{{ (10**(10**7)) % 7 }}")
    with pytest.raises(ServingError, match="'trust_request_chat_template'") as caught:
        ChatTemplate("llm", Tokenizer(TEMPLATE)).render(chat)
    assert caught.value.kind is ErrorKind.INVALID_ARG


@pytest.mark.parametrize(
    ("chat", "prompt"),
    [
        (Chat([USER]), "<user>Hi<assistant>"),
        (Chat([USER], add_generation_prompt=False), "<user>Hi"),
        (Chat([USER], tools=[{}, {}]), "<user>Hi2 tools<assistant>"),
        (Chat([USER], chat_template_kwargs={"loud": True}), "<user>Hi!<assistant>"),
        (Chat([USER], chat_template="{{ messages[0].content }}"), "Hi"),
        (Chat([{"role": "developer", "content": "Do"}]), "<system>Do<assistant>"),
        (
            Chat([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]),
            "<user>a\nb<assistant>",
        ),
        (
            Chat(
                [
                    {
                        "role": "assistant",
                        "content": "",
                        "tool_calls": [{"function": {"name": "f", "arguments": '{"x": 5}'}}],
                    }
                ]
            ),
            "<assistant>[f 5]<assistant>",
        ),
        (
            Chat([USER, {"role": "assistant", "content": "Yes"}], None, {}, False, True),
            "<user>Hi<assistant>Yes",
        ),
    ],
)
def test_a_chat_is_rendered(chat: Chat, prompt: str) -> None:
    assert render(chat) == prompt
    assert render(Chat.read(chat.packed())) == prompt


@pytest.mark.parametrize(
    ("template", "kind", "message"),
    [
        (None, ErrorKind.INVALID_ARG, "model 'llm' has no chat template"),
        ("{{ raise_exception('roles must alternate') }}", ErrorKind.INVALID_ARG, "roles must alternate"),
        ("{% for", ErrorKind.INVALID_ARG, "the chat template of model 'llm' refuses the messages: TemplateSyntaxError"),
        ("{{ messages.pop() }}", ErrorKind.INVALID_ARG, "SecurityError"),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            ErrorKind.INTERNAL,
            "the chat template of model 'llm' did not end within 0.05 s",
        ),
        ("{{ 'x' * 1000 }}", ErrorKind.INVALID_ARG, "made 1000 characters, more than 100"),
    ],
)
def test_a_template_that_fails_is_named(template: str | None, kind: ErrorKind, message: str) -> None:
    with pytest.raises(ServingError) as refused:
        render(Chat([USER]), template, seconds=0.05 if "range" in str(template) else 60.0, characters=100)
    assert refused.value.kind is kind
    assert message in refused.value.message


def test_no_tokenizer_renders_no_chat() -> None:
    with pytest.raises(ServingError, match="model 'llm' has no tokenizer"):
        ChatTemplate("llm", None).render(Chat([USER]))


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "a part of type 'image_url'"),
        ({"role": "user", "content": [5]}, "a part of type 'int'"),
        ({"role": "assistant", "tool_calls": [{"function": {"arguments": "{"}}]}, "arguments that are not JSON"),
    ],
)
def test_messages_that_no_template_takes_are_refused(message: dict[str, Any], problem: str) -> None:
    with pytest.raises(ServingError, match=problem) as refused:
        render(Chat([message]))
    assert refused.value.kind is ErrorKind.INVALID_ARG


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"messages": []}', "'messages' is empty"),
        ('{"messages": [{}], "x": 1}', "unknown field `x`"),
        ('{"messages": [{}], "continue_final_message": true}', "needs 'add_generation_prompt' to be false"),
        ('{"messages": [', "is not a chat"),
    ],
)
def test_what_is_no_chat_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ServingError, match=problem):
        Chat.read(text.encode())


def test_reserved_options_are_refused() -> None:
    for name in ("tokenize", "messages", "tools", "return_dict"):
        with pytest.raises(ServingError, match=f"'chat_template_kwargs' cannot have '{name}'"):
            render(Chat([USER], chat_template_kwargs={name: True}))


@given(
    st.binary(max_size=20) | st.dictionaries(st.text(max_size=9), st.integers()).map(lambda x: json.dumps(x).encode())
)
def test_any_bytes_are_a_chat_or_refused(text: bytes) -> None:
    with suppress(ServingError):
        Chat.read(text)

"""Chat completions by the official client, as people use it."""

import openai
from tests.runtime.frontends.openai.conftest import Served
from tests.runtime.frontends.openai.engine import tokens_of

HELLO = [{"role": "user", "content": "hello"}]


def test_a_chat_is_answered_with_its_usage(client: openai.OpenAI, served: Served) -> None:
    answer = client.chat.completions.create(model="talker", messages=HELLO)
    text = served.plane.script.text
    assert answer.choices[0].message.content == text
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens == len(tokens_of("<user>hello"))
    assert answer.usage.completion_tokens == len(tokens_of(text)) + 1
    assert answer._request_id == answer.id


def test_a_stream(client: openai.OpenAI, served: Served) -> None:
    stream = client.chat.completions.create(
        model="talker", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == served.plane.script.text
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == len(tokens_of(served.plane.script.text)) + 1

"""Answers, events and errors fit the official client's types strictly; its helpers put them together."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types import Completion, CreateEmbeddingResponse, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.shared import ErrorObject
from pydantic import BaseModel
from tests.runtime.frontends.openai.conftest import Served
from tests.runtime.frontends.openai.surface.parameters import FLAT_TOOL, TOOL, USER
from tests.runtime.frontends.openai.surface.strict import strictly

CALL = '<tool_call>\n{"name": "clock", "arguments": {"zone": "CET"}}\n</tool_call>'
CHAT: dict[str, Any] = {"model": "talker", "messages": [USER]}
CHATS: list[dict[str, Any]] = [
    {},
    {"n": 2, "logprobs": True, "top_logprobs": 2},
    {"tools": [TOOL]},
    {"max_tokens": 2, "service_tier": "auto"},
]
COMPLETIONS: list[dict[str, Any]] = [{}, {"n": 2, "echo": True, "logprobs": 2}]
RESPONSES: list[dict[str, Any]] = [
    {},
    {"tools": [FLAT_TOOL], "instructions": "Be brief."},
    {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
    {"max_output_tokens": 2, "text": {"format": {"type": "json_object"}, "verbosity": "low"}},
]
STREAM = {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": True}}


@pytest.fixture(params=["text", "call"])
def _script(served: Served, request: pytest.FixtureRequest) -> None:
    """Have the model write text, or a call of a function."""
    if request.param == "call":
        served.plane.script.text = f"I look.\n{CALL}"


def events(lines: Iterator[str]) -> list[str]:
    """Return the JSON of events but for the end."""
    return [line.removeprefix("data: ") for line in lines if line.startswith("data: ") and not line.endswith("[DONE]")]


@pytest.mark.usefixtures("_script")
@pytest.mark.parametrize("fields", CHATS)
def test_chat_completions(client: openai.OpenAI, fields: dict[str, Any]) -> None:
    raw = client.chat.completions.with_raw_response.create(**CHAT, **fields)
    assert strictly(ChatCompletion, raw.text).id == raw.request_id
    with client.chat.completions.with_streaming_response.create(**CHAT, **fields, **STREAM) as response:
        chunks = [strictly(ChatCompletionChunk, event) for event in events(response.iter_lines())]
    assert chunks[-1].usage == raw.parse().usage


def with_numbers(text: str) -> str:
    """Return a completion whose first token of a prompt has a probability: OpenAI's has null, which its type lacks."""
    document = json.loads(text)
    for choice in document["choices"]:
        if choice["logprobs"]:
            choice["logprobs"]["token_logprobs"] = [value or 0.0 for value in choice["logprobs"]["token_logprobs"]]
            choice["logprobs"]["top_logprobs"] = [value or {} for value in choice["logprobs"]["top_logprobs"]]
    return json.dumps(document)


@pytest.mark.parametrize("fields", COMPLETIONS)
def test_completions(client: openai.OpenAI, fields: dict[str, Any]) -> None:
    options: dict[str, Any] = {"model": "talker", "prompt": ["hello", "again"], **fields}
    raw = client.completions.with_raw_response.create(**options)
    assert strictly(Completion, with_numbers(raw.text)).choices[0].text
    # Chunks have no reason before the last one, which the type of whole answers requires.
    with client.completions.with_streaming_response.create(**options, stream=True) as response:
        for event in events(response.iter_lines()):
            strictly(Completion, with_numbers(event.replace('"finish_reason":null', '"finish_reason":"stop"')))


@pytest.mark.usefixtures("_script")
@pytest.mark.parametrize("fields", RESPONSES)
def test_responses(client: openai.OpenAI, fields: dict[str, Any]) -> None:
    raw = client.responses.with_raw_response.create(model="talker", input="hello", **fields)
    assert strictly(Response, raw.text).id == raw.request_id
    with client.responses.with_streaming_response.create(
        model="talker", input="hello", stream=True, **fields
    ) as response:
        last = [strictly(ResponseStreamEvent, event) for event in events(response.iter_lines())][-1]
    assert last.response.usage == raw.parse().usage


def test_a_response_that_fails(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.breaks_after = 3
    with client.responses.with_streaming_response.create(model="talker", input="hello", stream=True) as response:
        last = [strictly(ResponseStreamEvent, event) for event in events(response.iter_lines())][-1]
    assert last.type == "response.failed"


@pytest.mark.parametrize("model", ["pooling", "plain"])
@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_embeddings(embedding_server: Served, model: str, encoding: Any) -> None:
    with openai.OpenAI(base_url=embedding_server.url, api_key="none", max_retries=0) as client:
        raw = client.embeddings.with_raw_response.create(model=model, input=["a", "b"], encoding_format=encoding)
    document = json.loads(raw.text)
    if encoding == "base64":  # the client decodes it, and its type has numbers alone
        for item in document["data"]:
            item["embedding"] = [0.0]
    assert [item.index for item in strictly(CreateEmbeddingResponse, json.dumps(document)).data] == [0, 1]


def test_models(client: openai.OpenAI) -> None:
    document = json.loads(client.models.with_raw_response.list().text)
    assert document.keys() == {"object", "data"}
    models = [{key: value for key, value in model.items() if key != "parent"} for model in document["data"]]
    assert [strictly(Model, json.dumps(model)).id for model in models] == ["busy", "pirate", "talker", "whole"]
    assert strictly(Model, client.models.with_raw_response.retrieve("talker").text).owned_by == "argosy"


def test_errors(client: openai.OpenAI, served: Served) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**CHAT, n=1000)
    (error,) = raised.value.response.json().values()
    assert strictly(ErrorObject, json.dumps(error)).param == "n"
    served.plane.script.breaks_after = 3
    with client.chat.completions.with_streaming_response.create(**CHAT, stream=True) as response:
        (error,) = json.loads(events(response.iter_lines())[-1]).values()
    assert strictly(ErrorObject, json.dumps(error)).type == "server_error"


class Answer(BaseModel):
    value: int


def test_answers_and_streams_are_parsed(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = '{"value": 42}'
    parsed = client.chat.completions.parse(**CHAT, response_format=Answer)
    assert parsed.choices[0].message.parsed == Answer(value=42)
    with client.chat.completions.stream(**CHAT, response_format=Answer) as stream:
        kinds = {event.type for event in stream}
        assert stream.get_final_completion().choices[0].message.parsed == Answer(value=42)
    assert {"chunk", "content.delta", "content.done"} <= kinds
    with client.responses.stream(model="talker", input="hello", text_format=Answer) as responses:
        assert responses.get_final_response().output_parsed == Answer(value=42)


def test_an_answer_that_is_cut_off_is_not_parsed(client: openai.OpenAI) -> None:
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(**CHAT, response_format=Answer, max_tokens=2)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_whose_time_is_over_cancels(client: openai.OpenAI, served: Served, stream: bool) -> None:
    served.plane.script.holds = True
    with pytest.raises(openai.APITimeoutError if not stream else Exception):
        list(client.with_options(timeout=0.5).chat.completions.create(**CHAT, stream=stream))
    assert served.plane.cancelled.wait(60)


def test_the_asynchronous_client_streams_and_cancels(served: Served) -> None:
    async def read() -> str:
        async with openai.AsyncOpenAI(base_url=served.url, api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(**CHAT, stream=True)
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            served.plane.script.text = "many words " * 20_000
            endless = await client.chat.completions.create(**CHAT, stream=True)
            reading = asyncio.create_task(anext(aiter(endless)))
            assert (await reading).choices
            await endless.close()
            return text

    text = served.plane.script.text
    assert asyncio.run(read()) == text
    assert served.plane.cancelled.wait(60)

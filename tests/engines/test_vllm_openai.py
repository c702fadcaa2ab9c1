"""OpenAI's official client on the real vLLM: forced tools, responses, streams that end early."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from tests.engines.engine_requests import engine_processes, gauge
from tests.peers.server import Server
from tests.waiting import wait

pytestmark = pytest.mark.timeout(1200)

SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
FUNCTION = {"name": "choose", "parameters": SCHEMA}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]
CHAT: dict[str, Any] = {"model": "llm", "messages": [{"role": "user", "content": "Hi"}]}
LONG: dict[str, Any] = {"max_tokens": 4000, "temperature": 0, "stream": True, "extra_body": {"ignore_eos": True}}


@pytest.fixture
def client(vllm_server: Server) -> Iterator[openai.OpenAI]:
    url = f"http://127.0.0.1:{vllm_server.ports.http}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=300) as client:
        yield client


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "choose"}}])
def test_a_forced_tool_is_called(client: openai.OpenAI, choice: Any) -> None:
    options: dict[str, Any] = {"tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": False, "max_tokens": 300}
    answer = client.chat.completions.create(**CHAT, **options)
    (call,) = answer.choices[0].message.tool_calls or ()
    assert call.type == "function"
    assert call.function.name == "choose"
    assert json.loads(call.function.arguments)["a"] in (1, 2)
    with client.chat.completions.stream(**CHAT, **options) as stream:
        (streamed,) = stream.get_final_completion().choices[0].message.tool_calls or ()
    assert json.loads(streamed.function.arguments)["a"] in (1, 2)


def test_responses(client: openai.OpenAI) -> None:
    options: dict[str, Any] = {"model": "llm", "input": "Hi", "max_output_tokens": 12, "temperature": 0}
    full = client.responses.create(**options)
    assert full.usage is not None
    with client.responses.stream(**options) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
    assert "".join(deltas) == full.output_text
    text: Any = {"format": {"type": "json_schema", "name": "choice", "schema": SCHEMA}}
    chosen = client.responses.create(model="llm", input="Hi", max_output_tokens=300, text=text)
    assert json.loads(chosen.output_text)["a"] in (1, 2)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}},
            "response_format",
        ),
        ({"extra_body": {"structured_outputs": {"regex": "("}}}, "structured_outputs"),
        ({"messages": [{"role": "user", "content": "x" * 100_000}]}, "messages"),
        ({"max_completion_tokens": 5000}, "max_completion_tokens"),
    ],
)
def test_what_vllm_refuses_names_the_parameter(client: openai.OpenAI, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**{**CHAT, **fields})
    assert raised.value.param == param


def test_a_client_that_goes_ends_its_request(client: openai.OpenAI, vllm_server: Server) -> None:
    stream = client.chat.completions.create(**CHAT, **LONG)
    next(iter(stream))
    stream.close()
    wait(lambda: gauge(vllm_server, "vllm:num_requests_running") == 0, 0.1)


def test_an_engine_that_is_killed_ends_a_stream_with_an_error(client: openai.OpenAI, vllm_server: Server) -> None:
    (engine,) = engine_processes(vllm_server.process.pid)
    stream = iter(client.chat.completions.create(**CHAT, **LONG))
    next(stream)
    os.kill(engine, signal.SIGKILL)
    with pytest.raises(openai.APIError, match="its engine died") as raised:
        list(stream)
    assert raised.value.type == "server_error"
    assert client.chat.completions.create(**CHAT, max_tokens=4).choices

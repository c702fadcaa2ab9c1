"""Tools, by the official client: calls by choice, forced ones, streams of their arguments."""

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from tests.runtime.frontends.openai.conftest import Served

from argosy_runtime.language import Chat

ASK = [{"role": "user", "content": "How is the weather in Paris?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CLOCK = {"type": "function", "function": {"name": "clock"}}
TOOLS = [WEATHER, CLOCK]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris 🙂"}}\n</tool_call>'


def chat(client: openai.OpenAI, **fields: Any) -> Any:
    return client.chat.completions.create(**{"model": "talker", "messages": ASK, "tools": TOOLS, **fields})


def joined(stream: Any) -> tuple[str, list[dict[str, str]], str | None]:
    """Return the content, the calls and the reason of a stream, put together as clients do."""
    content, calls, reason = "", [], None
    for chunk in stream:
        (choice,) = chunk.choices
        content += choice.delta.content or ""
        for call in choice.delta.tool_calls or ():
            if call.id:
                assert call.index == len(calls)
                calls.append({"id": call.id, "name": call.function.name, "arguments": ""})
            calls[call.index]["arguments"] += call.function.arguments
        reason = choice.finish_reason or reason
    return content, calls, reason


def test_a_model_may_call(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = f"I look.\n{CALL}{CALL}"
    answer = chat(client)
    message = answer.choices[0].message
    assert (message.content, answer.choices[0].finish_reason) == ("I look.\n", "tool_calls")
    assert [call.function.name for call in message.tool_calls] == ["weather", "weather"]
    assert json.loads(message.tool_calls[0].function.arguments) == {"city": "Paris 🙂"}
    assert len({call.id for call in message.tool_calls}) == 2
    prompt = served.plane.script.seen[-1].prompt
    assert isinstance(prompt, Chat)
    assert [tool["function"]["name"] for tool in prompt.tools] == ["weather", "clock"]


def test_a_model_may_as_well_answer(client: openai.OpenAI, served: Served) -> None:
    answer = chat(client)
    assert answer.choices[0].message.content == served.plane.script.text
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].finish_reason == "stop"


def test_a_stream_has_the_arguments_as_they_come(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = f"I look.\n{CALL}\n{CALL}"
    chunks = list(chat(client, stream=True))
    assert sum(bool(chunk.choices[0].delta.tool_calls) for chunk in chunks) > 4
    content, calls, reason = joined(chunks)
    assert (content, reason) == ("I look.\n", "tool_calls")
    assert [call["name"] for call in calls] == ["weather", "weather"]
    assert [json.loads(call["arguments"]) for call in calls] == [{"city": "Paris 🙂"}] * 2


@pytest.mark.parametrize("stream", [False, True])
def test_without_parallel_calls_there_is_one(client: openai.OpenAI, served: Served, stream: bool) -> None:
    served.plane.script.text = CALL * 2
    answer = chat(client, parallel_tool_calls=False, stream=stream)
    calls = joined(answer)[1] if stream else answer.choices[0].message.tool_calls
    assert len(calls) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_required_call_is_constrained_by_a_schema(client: openai.OpenAI, served: Served, stream: bool) -> None:
    served.plane.script.text = '[{"name": "clock", "parameters": {}}]'
    answer = chat(client, tool_choice="required", stream=stream)
    if stream:
        _, calls, reason = joined(answer)
        assert (calls[0]["name"], calls[0]["arguments"], reason) == ("clock", "{}", "tool_calls")
    else:
        assert answer.choices[0].message.tool_calls[0].function.name == "clock"
    schema = served.plane.script.seen[-1].sampling.structured_outputs.json
    assert (schema["type"], schema["minItems"]) == ("array", 1)
    names = [item["properties"]["name"]["enum"] for item in schema["items"]["anyOf"]]
    assert names == [["weather"], ["clock"]]
    assert schema["items"]["anyOf"][0]["properties"]["parameters"] == WEATHER["function"]["parameters"]


@pytest.mark.parametrize("stream", [False, True])
def test_of_a_named_function_the_model_writes_the_arguments(
    client: openai.OpenAI, served: Served, stream: bool
) -> None:
    served.plane.script.text = '{"city": "Rome"}'
    answer = chat(client, tool_choice={"type": "function", "function": {"name": "weather"}}, stream=stream)
    if stream:
        _, calls, reason = joined(answer)
        assert (calls[0]["name"], calls[0]["arguments"], reason) == ("weather", '{"city": "Rome"}', "stop")
    else:
        (call,) = answer.choices[0].message.tool_calls
        assert (call.function.name, call.function.arguments) == ("weather", '{"city": "Rome"}')
    assert served.plane.script.seen[-1].sampling.structured_outputs.json == WEATHER["function"]["parameters"]


def test_some_tools_may_be_allowed(client: openai.OpenAI, served: Served) -> None:
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "clock"}}]}
    chat(client, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
    schema = served.plane.script.seen[-1].sampling.structured_outputs.json
    assert [item["properties"]["name"]["enum"] for item in schema["items"]["anyOf"]] == [["clock"]]


def test_no_tool_is_offered_where_none_may_be_called(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = CALL
    answer = chat(client, tool_choice="none")
    assert answer.choices[0].message.content == CALL
    prompt = served.plane.script.seen[-1].prompt
    assert isinstance(prompt, Chat)
    assert prompt.tools is None


def test_the_result_of_a_call_goes_back(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = CALL
    first = chat(client).choices[0].message
    served.plane.script.text = "Sunny."
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "sun"}
    answer = chat(client, messages=[*ASK, first, result])
    assert answer.choices[0].message.content == "Sunny."
    prompt = served.plane.script.seen[-1].prompt
    assert isinstance(prompt, Chat)
    assert [message["role"] for message in prompt.messages] == ["user", "assistant", "tool"]


def test_the_clients_own_types_are_read(client: openai.OpenAI, served: Served) -> None:
    class Weather(BaseModel):
        city: str

    served.plane.script.text = '{"name": "Weather", "parameters": {"city": "Oslo"}}'
    tool = openai.pydantic_function_tool(Weather)
    answer = client.chat.completions.parse(model="talker", messages=ASK, tools=[tool])
    assert answer.choices[0].message.tool_calls[0].function.parsed_arguments == Weather(city="Oslo")


def test_the_clients_stream_helper_puts_calls_together(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = CALL
    with client.chat.completions.stream(model="talker", messages=ASK, tools=TOOLS) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_completion()
    assert {"tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds
    assert answer.choices[0].message.tool_calls[0].function.arguments == '{"city": "Paris 🙂"}'


def test_a_call_that_is_cut_off_ends_by_its_length(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = CALL
    answer = chat(client, max_tokens=26)
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.tool_calls[0].function.arguments.startswith('{"ci')


def test_choices_have_separate_calls(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = CALL
    answer = chat(client, n=2)
    assert [len(choice.message.tool_calls) for choice in answer.choices] == [1, 1]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools"),
        ({"tools": [WEATHER, WEATHER]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice"),
        ({"tools": openai.NOT_GIVEN, "tool_choice": "auto"}, "tool_choice"),
        ({"tools": openai.NOT_GIVEN, "parallel_tool_calls": True}, "parallel_tool_calls"),
        ({"tools": [CLOCK] * 129}, "tools"),
    ],
)
def test_tools_that_cannot_be_offered_are_named(client: openai.OpenAI, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        chat(client, **fields)
    assert raised.value.param == param

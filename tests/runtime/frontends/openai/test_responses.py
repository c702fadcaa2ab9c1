"""Responses without a state, by the official client."""

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from tests.runtime.frontends.openai.conftest import Served
from tests.runtime.frontends.openai.engine import tokens_of
from tests.waiting import PATIENCE_S

from argosy_runtime.language import Chat

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def respond(client: openai.OpenAI, **fields: Any) -> Any:
    return client.responses.create(**{"model": "talker", "input": "hello", **fields})


def prompt_of(served: Served) -> Chat:
    """Return the chat of the last request."""
    prompt = served.plane.script.seen[-1].prompt
    assert isinstance(prompt, Chat)
    return prompt


def test_a_text_is_answered_with_its_usage(client: openai.OpenAI, served: Served) -> None:
    response = respond(client, instructions="Be brief.", metadata={"a": "b"})
    text = served.plane.script.text
    assert (response.output_text, response.status) == (text, "completed")
    assert (response.instructions, response.metadata, response.error) == ("Be brief.", {"a": "b"}, None)
    assert response.usage.output_tokens == len(tokens_of(text)) + 1
    assert response.usage.input_tokens_details.cached_tokens == 0
    assert [message["role"] for message in prompt_of(served).messages] == ["system", "user"]
    assert response.id.startswith("resp_")


def test_an_input_of_items_is_a_conversation(client: openai.OpenAI, served: Served) -> None:
    items = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "sun"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "rain"}]},
        {"role": "user", "content": "and?"},
    ]
    respond(client, input=items)
    messages = prompt_of(served).messages
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [message["content"] for message in messages] == ["Be brief.", "one\ntwo", "yes", "sun", "rain", "and?"]
    assert [call["id"] for call in messages[2]["tool_calls"]] == ["c1", "c2"]


def test_the_events_of_a_text_are_in_order(client: openai.OpenAI, served: Served) -> None:
    events = list(respond(client, stream=True))
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert set(kinds[4:-4]) == {"response.output_text.delta"}
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == events[-4].text == events[-1].response.output_text == served.plane.script.text
    assert (events[0].response.status, events[0].response.output) == ("in_progress", [])
    assert events[-1].response.usage.output_tokens
    assert {event.item_id for event in events[3:-2]} == {events[2].item.id}


def test_the_events_of_calls_are_in_order(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = f"I look.\n{CALL}{CALL}"
    events = list(respond(client, tools=[WEATHER], stream=True))
    kinds = [event.type.removeprefix("response.") for event in events]
    once = [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]
    call = [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    message = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done"]
    assert once == [
        *("created", "in_progress"),
        *message,
        *("content_part.done", "output_item.done"),
        *call,
        *call,
        "completed",
    ]
    response = events[-1].response
    assert [item.type for item in response.output] == ["message", "function_call", "function_call"]
    assert json.loads(response.output[1].arguments) == {"city": "Paris"}
    assert [event.output_index for event in events if event.type == "response.output_item.done"] == [0, 1, 2]


def test_a_conversation_goes_on_with_the_output_of_a_response(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = CALL
    first = respond(client, tools=[WEATHER])
    (call,) = first.output
    served.plane.script.text = "Sunny."
    items = [
        {"role": "user", "content": "weather?"},
        *[item.model_dump(exclude_none=True) for item in first.output],
        {"type": "function_call_output", "call_id": call.call_id, "output": "sun"},
    ]
    assert respond(client, tools=[WEATHER], input=items).output_text == "Sunny."
    assert prompt_of(served).messages[1]["tool_calls"][0]["id"] == call.call_id


def test_a_required_function_is_constrained(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.text = '{"city": "Rome"}'
    response = respond(client, tools=[WEATHER], tool_choice={"type": "function", "name": "weather"})
    assert response.output[0].arguments == '{"city": "Rome"}'
    assert served.plane.script.seen[-1].sampling.structured_outputs.json == WEATHER["parameters"]


def test_structured_output(client: openai.OpenAI, served: Served) -> None:
    class City(BaseModel):
        name: str

    served.plane.script.text = '{"name": "Rome"}'
    response = client.responses.parse(model="talker", input="a city", text_format=City)
    assert response.output_parsed == City(name="Rome")
    schema = served.plane.script.seen[-1].sampling.structured_outputs.json
    assert schema["properties"]["name"]["type"] == "string"


def test_a_response_that_is_cut_off_is_incomplete(client: openai.OpenAI, served: Served) -> None:
    response = respond(client, max_output_tokens=3)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.output[0].status == "incomplete"
    assert list(respond(client, max_output_tokens=3, stream=True))[-1].type == "response.incomplete"


def test_logprobs(client: openai.OpenAI) -> None:
    response = respond(client, include=["message.output_text.logprobs"], top_logprobs=2, max_output_tokens=2)
    (part,) = response.output[0].content
    assert [len(entry.top_logprobs) for entry in part.logprobs] == [2, 2]


def test_the_clients_stream_helper_puts_a_response_together(client: openai.OpenAI, served: Served) -> None:
    with client.responses.stream(model="talker", input="hello") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        response = stream.get_final_response()
    assert "".join(deltas) == response.output_text == served.plane.script.text


def test_an_engine_that_dies_fails_the_response(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.breaks_after = 3
    events = list(respond(client, stream=True))
    assert events[-1].type == "response.failed"
    assert "the engine died" in events[-1].response.error.message
    assert events[-1].response.status == "failed"


def test_a_client_that_leaves_ends_the_generation(client: openai.OpenAI, served: Served) -> None:
    served.plane.script.endless = True
    stream = respond(client, stream=True)
    next(iter(stream))
    stream.close()
    assert served.plane.cancelled.wait(PATIENCE_S)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"store": True}, "store"),
        ({"background": True}, "background"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"truncation": "auto"}, "truncation"),
        ({"include": ["file_search_call.results"]}, "include"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"role": "king", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0]"),
        ({"input": []}, "input"),
    ],
)
def test_what_is_not_supported_is_named(client: openai.OpenAI, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        respond(client, **fields)
    assert raised.value.param == param


def test_an_unknown_model_and_a_prompt_that_is_too_long(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        respond(client, model="nobody")
    with pytest.raises(openai.BadRequestError) as raised:
        respond(client, input="x" * 10_000)
    assert (raised.value.param, raised.value.code) == ("input", "context_length_exceeded")

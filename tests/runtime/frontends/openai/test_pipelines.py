"""Pipelines as chat models, by the official client."""

import json

import openai
import pytest
from tests.runtime.frontends.openai.pipelines import TEXT, PipelinePlane

from argosy_runtime.errors import invalid

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": "yes"},
    {"role": "user", "content": [{"type": "text", "text": "second"}]},
]
LAST = CHAT[-1:]
PLANE = PipelinePlane


def test_pipelines_are_among_the_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["full", "small"]


def test_a_chat_becomes_the_pipelines_inputs(client: openai.OpenAI, plane: PipelinePlane) -> None:
    answer = client.chat.completions.create(model="full", messages=CHAT, max_tokens=9, temperature=0.5)
    assert answer.choices[0].message.content == TEXT
    assert answer.choices[0].finish_reason == "length"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, len(TEXT.encode()))
    requested = plane.requested()
    assert (requested["question"], requested["rules"], requested["limit"], requested["live"]) == (
        "second",
        "Be brief.",
        9,
        False,
    )
    assert json.loads(requested["how"]) == {"temperature": 0.5}
    assert [message["content"] for message in json.loads(requested["dialog"])] == [
        "Be brief.",
        "first",
        "yes",
        "second",
    ]
    assert plane.requests[-1].inputs["question"].array.shape == (1, 1)


def test_a_pipeline_needs_no_more_than_a_prompt_and_a_text(client: openai.OpenAI, plane: PipelinePlane) -> None:
    answer = client.chat.completions.create(model="small", messages=LAST, temperature=1, top_p=1)
    assert answer.choices[0].message.content == TEXT
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is None
    assert plane.requested() == {"question": "second"}
    assert plane.requests[-1].inputs["question"].array.shape == (1,)
    assert plane.requests[-1].requested_outputs == ("answer", "blocked")


def test_pieces_of_a_stream_end_at_complete_characters(client: openai.OpenAI, plane: PipelinePlane) -> None:
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(model="full", messages=LAST, stream=True, stream_options=options))
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert pieces == list(TEXT)
    assert plane.requested()["live"] is True
    assert chunks[-1].usage.completion_tokens == len(TEXT.encode())


def test_a_text_that_ends_within_a_character_ends_with_its_replacement(
    client: openai.OpenAI, plane: PipelinePlane
) -> None:
    plane.pieces = [b"a", "🙂".encode()[:3]]
    answer = client.chat.completions.create(model="small", messages=LAST)
    assert answer.choices[0].message.content == "a\ufffd"


@pytest.mark.parametrize("stream", [False, True])
def test_a_refused_answer_is_a_content_filters(client: openai.OpenAI, plane: PipelinePlane, stream: bool) -> None:
    plane.blocked = True
    answer = client.chat.completions.create(model="small", messages=LAST, stream=stream)
    reasons = [chunk.choices[0].finish_reason for chunk in answer] if stream else [answer.choices[0].finish_reason]
    assert reasons[-1] == "content_filter"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": 0.5}, "temperature"),
        ({"max_tokens": 5}, "max_tokens"),
        ({"seed": 1}, "seed"),
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"max_completion_tokens": 5}, "max_completion_tokens"),
        ({"reasoning_effort": "low"}, "reasoning_effort"),
        ({"verbosity": "low"}, "verbosity"),
        ({"extra_body": {"chat_template_kwargs": {"thinking": True}}}, "chat_template_kwargs"),
        ({"extra_body": {"add_generation_prompt": False}}, "add_generation_prompt"),
        ({"extra_body": {"continue_final_message": True}}, "continue_final_message"),
        ({"messages": CHAT}, "messages"),
        ({"messages": CHAT[2:3]}, "messages"),
    ],
)
def test_what_a_pipeline_does_not_take_is_refused(
    client: openai.OpenAI, plane: PipelinePlane, fields: dict[str, object], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**{"model": "small", "messages": LAST, **fields})
    assert raised.value.param == param
    assert not plane.requests


def test_values_that_ask_for_nothing_are_taken(client: openai.OpenAI) -> None:
    neutral = {"chat_template_kwargs": {}, "add_generation_prompt": True, "continue_final_message": False}
    assert client.chat.completions.create(model="small", messages=LAST, extra_body=neutral)


@pytest.mark.parametrize(
    ("fields", "param"),
    [({"reasoning": {"effort": "low"}}, "reasoning.effort"), ({"max_output_tokens": 20}, "max_output_tokens")],
)
def test_a_responses_own_names_are_those_that_are_refused(
    client: openai.OpenAI, fields: dict[str, object], param: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=f"does not take '{param}'") as raised:
        client.responses.create(**{"model": "small", "input": "x", "store": False, **fields})
    assert raised.value.param == param


def test_a_limit_beyond_its_inputs_type_is_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="is too large"):
        client.chat.completions.create(model="full", messages=LAST, max_tokens=2**40)


def test_a_pipelines_error_is_the_answer(client: openai.OpenAI, plane: PipelinePlane) -> None:
    plane.error = invalid("input 'question' is not UTF-8")
    with pytest.raises(openai.BadRequestError, match="is not UTF-8"):
        client.chat.completions.create(model="small", messages=LAST)


def test_a_pipeline_completes_no_prompts(client: openai.OpenAI) -> None:
    words = "'small' does not answer /v1/completions; it answers /v1/chat/completions and /v1/responses"
    with pytest.raises(openai.NotFoundError, match=words):
        client.completions.create(model="small", prompt="x")

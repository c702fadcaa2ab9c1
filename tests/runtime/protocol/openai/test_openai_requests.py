"""Requests of OpenAI's API as inference requests, read by the contract of language models."""

import json
from typing import Any

import numpy as np
import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.language import Chat, GenerationRequest, Tokens
from argosy_runtime.language.tensors import completed
from argosy_runtime.messages import InferRequest
from argosy_runtime.protocol.openai.errors import ApiError
from argosy_runtime.protocol.openai.generation import LanguageModel, chat_inference, completion_inferences
from argosy_runtime.protocol.openai.requests import chat, completion

MODEL = LanguageModel.of(completed(ModelConfig(name="m")))
USER = {"role": "user", "content": "hello"}


def chat_request(**fields: Any) -> InferRequest:
    body = json.dumps({"model": "m", "messages": [USER], **fields}).encode()
    return chat_inference(MODEL, chat.decode(body), "r")


def generation(**fields: Any) -> GenerationRequest:
    return GenerationRequest.read(chat_request(**fields))


def messages(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    prompt = generation(messages=list(messages)).prompt
    assert isinstance(prompt, Chat)
    return prompt.messages


def completions(**fields: Any) -> list[GenerationRequest]:
    body = json.dumps({"model": "m", "prompt": "p", **fields}).encode()
    return [GenerationRequest.read(request) for request in completion_inferences(MODEL, completion.decode(body), "r")]


def test_a_chat_has_no_limit_of_tokens_and_the_adapter() -> None:
    request = generation()
    assert request.sampling.max_tokens is None
    assert not request.stream
    assert not request.repeats_prompt
    assert request.prompt == Chat([USER])


def test_all_parameters_of_sampling_reach_the_engine() -> None:
    fields: dict[str, Any] = {
        "n": 3,
        "temperature": 0.5,
        "top_p": 0.25,
        "top_k": 7,
        "min_p": 0.125,
        "seed": -5,
        "min_tokens": 2,
        "stop": ["a", "b"],
        "stop_token_ids": [4],
        "ignore_eos": True,
        "presence_penalty": 1.0,
        "frequency_penalty": -1.0,
        "repetition_penalty": 1.5,
        "bad_words": ["x"],
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "include_stop_str_in_output": True,
        "allowed_token_ids": [1, 2],
        "truncate_prompt_tokens": 5,
        "priority": -2,
        "cache_salt": "salt",
    }
    sampling = generation(
        logit_bias={"3": -100}, max_completion_tokens=9, logprobs=True, top_logprobs=4, **fields
    ).sampling
    assert {name: getattr(sampling, name) for name in fields} == fields
    assert sampling.logit_bias == {3: -100.0}
    assert sampling.max_tokens == 9
    assert sampling.logprobs == 4


def test_the_newer_name_of_the_limit_counts() -> None:
    assert generation(max_tokens=5).sampling.max_tokens == 5
    assert generation(max_tokens=5, max_completion_tokens=7).sampling.max_tokens == 7


def test_no_nucleus_is_the_likeliest_token() -> None:
    assert 0 < (generation(top_p=0).sampling.top_p or 0) < 1e-3


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"response_format": {"type": "json_object"}}, "json_object"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array"}}}},
            "json",
        ),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "json_object"),
        ({"structured_outputs": {"choice": ["a", "b"]}}, "choice"),
        ({"response_format": {"type": "text"}, "structured_outputs": {"regex": "a+"}}, "regex"),
    ],
)
def test_constraints(fields: dict[str, Any], kind: str) -> None:
    constraint = generation(**fields).sampling.structured_outputs
    assert constraint is not None
    assert constraint.kind == kind


def test_text_is_no_constraint() -> None:
    assert generation(response_format={"type": "text"}).sampling.structured_outputs is None


def test_a_stream_costs_no_more_outputs_than_it_shows() -> None:
    assert generation(stream=True).outputs == ("text_output", "finish_reason")
    assert "num_output_tokens" in generation(stream=True, stream_options={"include_usage": True}).outputs
    assert "index" in generation(stream=True, n=2).outputs
    assert "logprobs" in generation(stream=True, logprobs=True).outputs
    assert "num_cached_tokens" in generation().outputs


def test_a_model_that_does_not_stream_gets_no_request_to() -> None:
    config = completed(ModelConfig(name="m"))
    config.model_transaction_policy.decoupled = False
    body = json.dumps({"model": "m", "messages": [USER], "stream": True}).encode()
    request = chat_inference(LanguageModel.of(config), chat.decode(body), "r")
    assert not GenerationRequest.read(request, decoupled=False).stream


def test_parts_of_text_are_lines() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert messages({"role": "user", "content": parts}) == [{"role": "user", "content": "one\ntwo"}]


def test_roles_as_templates_know_them() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = messages(
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "hello", "name": "ann"},
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "3"},
        {"role": "function", "name": "f", "content": None},
        {"role": "assistant", "content": "so", "reasoning_content": "because"},
    )
    assert [message["role"] for message in history] == [
        "system",
        "user",
        "assistant",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert history[1]["name"] == "ann"
    assert history[2]["content"] == "no"
    assert history[3]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert history[4]["tool_call_id"] == "1"
    assert history[6]["reasoning_content"] == "because"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://x"}},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f"}},
    ],
)
def test_parts_that_are_no_text_are_refused(part: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        chat_request(messages=[{"role": "user", "content": [{"type": "text", "text": "see"}, part]}])
    assert caught.value.param == "messages[0].content[1]"


def test_an_assistant_says_something() -> None:
    with pytest.raises(ApiError) as caught:
        chat_request(messages=[{"role": "assistant"}])
    assert caught.value.param == "messages[0].content"


def test_templates_have_effort_and_length() -> None:
    prompt = generation(reasoning_effort="none", verbosity="low", chat_template_kwargs={"custom": [1]}).prompt
    assert isinstance(prompt, Chat)
    assert prompt.chat_template_kwargs == {
        "reasoning_effort": "none",
        "enable_thinking": False,
        "verbosity": "low",
        "custom": [1],
    }


def test_a_last_message_to_go_on_with() -> None:
    history = [USER, {"role": "assistant", "content": "well"}]
    prompt = generation(messages=history, continue_final_message=True).prompt
    assert isinstance(prompt, Chat)
    assert prompt.continue_final_message
    assert not prompt.add_generation_prompt


def test_prompts_of_completions() -> None:
    assert [request.prompt for request in completions()] == ["p"]
    assert [request.prompt for request in completions(prompt=["a", "b"])] == ["a", "b"]
    assert [request.prompt for request in completions(prompt=[1, 2])] == [Tokens([1, 2])]
    assert [request.prompt for request in completions(prompt=[[1], [2, 3]])] == [Tokens([1]), Tokens([2, 3])]


def test_completions_are_short_unless_they_say_otherwise() -> None:
    assert completions()[0].sampling.most_tokens == 16
    assert completions(max_tokens=0, echo=True)[0].sampling.max_tokens == 0


def test_only_tokens_are_repeated_by_the_model() -> None:
    assert not completions(echo=True)[0].repeats_prompt
    (request,) = completions(prompt=[1], echo=True, stream=True)
    assert request.repeats_prompt
    assert not request.stream


def test_an_echo_has_its_probabilities() -> None:
    (request,) = completions(echo=True, logprobs=2)
    assert request.sampling.prompt_logprobs == 2
    assert "prompt_logprobs" in request.outputs


def test_a_model_without_probabilities_refuses_them() -> None:
    model = LanguageModel("m", frozenset(("text_output",)), decoupled=True)
    body = json.dumps({"model": "m", "messages": [USER], "logprobs": True}).encode()
    with pytest.raises(ApiError, match="gives no probabilities"):
        chat_inference(model, chat.decode(body), "r")


def test_tokens_are_integers() -> None:
    body = json.dumps({"model": "m", "prompt": [1, 2]}).encode()
    (request,) = completion_inferences(MODEL, completion.decode(body), "r")
    assert request.inputs["input_ids"].array.dtype == np.int32


def test_the_best_are_chosen_among_more() -> None:
    (request,) = completions(best_of=3)
    assert request.sampling.n == 3
    assert request.sampling.logprobs == 0
    assert "cumulative_logprob" in request.outputs
    assert "logprobs" not in request.outputs
    assert completions(best_of=2, n=2)[0].sampling.logprobs is None

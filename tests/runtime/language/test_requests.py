"""Requests for a generation, read from their tensors."""

import json
from typing import Any

import pytest
from tests.runtime.language.language_requests import generation
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language import Chat, GenerationRequest, Sampling, Tokens, is_embedding_model, is_language_model
from argosy_runtime.language.tensors import (
    EMBEDDING_INPUTS,
    EMBEDDING_OUTPUTS,
    INPUTS,
    OUTPUTS,
    PLAIN_INPUTS,
    completed,
)

read = GenerationRequest.read


def test_a_text_is_a_prompt() -> None:
    request = read(generation(text_input="Hi é"))
    assert (request.prompt, request.stream, request.sampling) == ("Hi é", False, Sampling())
    assert request.outputs == ("text_output",)
    assert (request.model_name, request.id) == ("llm", "r")


def test_tokens_are_a_prompt_and_are_answered_by_tokens() -> None:
    request = read(generation(input_ids=[1, 2, 3]))
    assert request.prompt == Tokens([1, 2, 3])
    assert request.outputs == ("output_ids", "sequence_length")
    assert not request.repeats_prompt


def test_a_chat_is_a_prompt() -> None:
    chat = Chat([{"role": "user", "content": "Hi"}], chat_template_kwargs={"thinking": True})
    request = read(generation(messages=chat.packed()))
    assert request.prompt == chat
    assert request.outputs == ("text_output",)
    assert not request.repeats_prompt


@pytest.mark.parametrize("inputs", [{}, {"text_input": "a", "input_ids": [1]}, {"text_input": "a", "messages": b"{}"}])
def test_one_prompt_is_expected(inputs: dict[str, Any]) -> None:
    with pytest.raises(ServingError, match="takes one of the inputs text_input, input_ids, messages") as refused:
        read(generation(**inputs))
    assert refused.value.kind is ErrorKind.INVALID_ARG


@pytest.mark.parametrize(
    ("inputs", "repeats"),
    [
        ({}, True),
        ({"exclude_input_in_output": False}, True),
        ({"exclude_input_in_output": True}, False),
        ({"stream": True}, False),
        ({"stream": True, "exclude_input_in_output": True}, False),
    ],
)
def test_the_prompt_is_repeated_as_triton_does(inputs: dict[str, Any], repeats: bool) -> None:
    assert read(generation(text_input="a", **inputs)).repeats_prompt is repeats


def test_a_stream_cannot_repeat_the_prompt() -> None:
    with pytest.raises(ServingError, match="`exclude_input_in_output` = False is not allowed"):
        read(generation(text_input="a", stream=True, exclude_input_in_output=False))


def test_a_model_that_answers_once_does_not_stream() -> None:
    with pytest.raises(ServingError, match="only supported in decoupled mode"):
        read(generation(text_input="a", streaming=True), decoupled=False)


def test_flags_add_outputs() -> None:
    flags = {name: True for name in INPUTS if name.startswith("return_")}
    request = read(generation(text_input="a", **flags))
    assert set(request.outputs) == {
        "text_output",
        "finish_reason",
        "cumulative_logprob",
        "logprobs",
        "num_input_tokens",
        "num_output_tokens",
        "num_cached_tokens",
        "output_ids",
        "sequence_length",
    }
    assert request.flagged == set(request.outputs) - {"text_output"}
    assert read(generation(text_input="a", return_logprobs=False)).outputs == ("text_output",)


def test_named_outputs_are_the_ones() -> None:
    request = read(generation(("index", "text_output"), text_input="a", return_finish_reason=True))
    assert request.outputs == ("index", "text_output")
    assert request.wants("index")
    assert not request.wants("finish_reason")


def test_parameters_are_json_or_parameters_of_the_request() -> None:
    text = json.dumps({"max_tokens": "7", "temperature": "0.1"})
    expected = Sampling(max_tokens=7, temperature=0.1)
    assert read(generation(text_input="a", sampling_parameters=text)).sampling == expected
    others = {"max_tokens": 7, "temperature": 0.1, "of_a_proxy": "x"}
    assert read(generation((), others, text_input="a")).sampling == expected


def test_tensors_of_their_own_are_parameters() -> None:
    sampling = read(
        generation(
            input_ids=[1],
            request_output_len=9,
            temperature=0.95,
            top_k=5,
            top_p=0.9,
            random_seed=2**63 + 5,
            stop_words=["a", ""],
            bad_words=["b"],
            min_length=2,
            repetition_penalty=1.1,
            presence_penalty=0.5,
            frequency_penalty=-0.5,
            num_return_sequences=2,
            lora_name="l",
            beam_width=1,
            pad_id=0,
        )
    ).sampling
    assert sampling == Sampling(
        max_tokens=9,
        temperature=0.95,
        top_k=5,
        top_p=0.9,
        seed=2**63 + 5,
        stop=["a"],
        bad_words=["b"],
        min_tokens=2,
        repetition_penalty=1.1,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        n=2,
        lora_name="l",
    )


def test_tensors_of_their_own_add_to_json() -> None:
    sampling = read(generation(text_input="a", max_tokens=3, sampling_parameters='{"top_p": 0.5}')).sampling
    assert sampling == Sampling(max_tokens=3, top_p=0.5)
    sampling = read(generation(text_input="a", top_k=3, sampling_parameters='{"max_tokens": null}')).sampling
    assert sampling == Sampling(max_tokens=None, top_k=3)


def test_an_end_id_replaces_the_models_own() -> None:
    assert read(generation(input_ids=[1], end_id=5)).sampling == Sampling(ignore_eos=True, stop_token_ids=[5])
    assert read(generation(input_ids=[1], end_id=-1)).sampling == Sampling(ignore_eos=True)


def test_beams_are_refused() -> None:
    with pytest.raises(ServingError, match="input 'beam_width' is 4, expected 1"):
        read(generation(input_ids=[1], beam_width=4))


def test_wrong_tensors_are_named() -> None:
    with pytest.raises(ServingError, match="input 'text_input' is not UTF-8"):
        read(generation(text_input=b"\xff"))
    with pytest.raises(ServingError, match=r"input 'text_input' has shape \[2\], expected one element"):
        read(generation(text_input=["a", "b"]))
    with pytest.raises(ServingError, match="input 'messages' is not a chat"):
        read(generation(messages=b'{"messages": ['))


def test_a_completed_config_is_a_language_models() -> None:
    config = completed(ModelConfig(name="llm"), plain=PLAIN_INPUTS)
    assert [tensor.name for tensor in config.input] == [*INPUTS, *PLAIN_INPUTS]
    assert [tensor.name for tensor in config.output] == list(OUTPUTS)
    assert all(tensor.optional for tensor in config.input)
    assert config.model_transaction_policy.decoupled
    assert completed(config, plain=PLAIN_INPUTS) == config
    assert is_language_model(config)
    assert not is_embedding_model(config)


def test_an_embedding_model_is_none_that_generates() -> None:
    config = completed(ModelConfig(name="e"), inputs=EMBEDDING_INPUTS, outputs=EMBEDDING_OUTPUTS)
    assert is_embedding_model(config)
    assert not is_language_model(config)

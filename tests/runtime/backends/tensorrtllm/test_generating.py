"""Requests through the backend: the stand-in's next token is the last one plus one, so answers are known."""

import json
import threading
from typing import Any

import numpy as np
import pytest
import transformers
from tests.runtime.backends.language_model import output, text_request

from argosy_runtime.errors import ErrorKind
from argosy_runtime.messages import InferRequest, Tensor

from .conftest import END, Load, pbtxt, write_checkpoint, write_engine


def tokens_request(*ids: int, stream: bool = False, outputs: tuple[str, ...] = (), **sampling: Any) -> InferRequest:
    """Return a request of tokens with these sampling parameters."""
    tensors = {
        "input_ids": Tensor("input_ids", "INT32", np.array(ids, np.int32)),
        "sampling_parameters": text_tensor("sampling_parameters", json.dumps(sampling)),
    }
    if stream:
        tensors["stream"] = Tensor("stream", "BOOL", np.array([True]))
    return InferRequest("lm", tensors, id="r", requested_outputs=outputs)


def text_tensor(name: str, text: str) -> Tensor:
    """Return a tensor of one text."""
    return Tensor(name, "BYTES", np.array([text.encode()], np.object_))


def answered(instance: Any, responder: Any, *requests: InferRequest) -> list[Any]:
    """Execute requests, and return their only responses."""
    instance.execute(list(requests), responder)
    responder.wait_for_final(*range(len(requests)))
    return [responder.only(index) for index in range(len(requests))]


@pytest.mark.parametrize("write", [write_engine, write_checkpoint])
def test_text_goes_in_and_comes_out(write: Any, load: Load, responder: Any, calls: Any) -> None:
    instance = load(write)
    sampling = {"max_tokens": 3, "temperature": 0}
    requests = [
        text_request("w10 w11", sampling, exclude_input_in_output=True),
        text_request("w10 w11", sampling),
        text_request("w10 w11", sampling, stream=True, return_finish_reason=True),
        tokens_request(10, 11, max_tokens=3),
    ]
    instance.execute(requests, responder)
    responder.wait_for_final(0, 1, 2, 3)
    assert output(responder.only(0), "text_output") == [b"w12 w13 w14"]
    assert output(responder.only(1), "text_output") == [b"w10 w11w12 w13 w14"]
    streamed = responder.of(2)
    assert len(streamed) == 3
    assert b"".join(output(item, "text_output")[0] for item in streamed) == b"w12 w13 w14"
    assert [output(item, "finish_reason") for item in streamed] == [[b"None"], [b"None"], [b"length"]]
    assert output(responder.only(3)) == [12, 13, 14]
    opened = calls("LLM")[0]
    assert opened["engines"] is (write is write_engine)
    assert opened["guided_decoding_backend"] == "xgrammar"
    assert calls("generate_async")[0]["sampling"] == {
        "best_of": 1,
        "end_id": END,
        "exclude_input_from_output": True,
        "max_tokens": 3,
        "n": 1,
        "add_special_tokens": True,
        "skip_special_tokens": True,
        "spaces_between_special_tokens": True,
        "stop_token_ids": [END],
        "top_k": 1,
    }


def test_a_chat_is_rendered_by_the_tokenizers_template(load: Load, responder: Any) -> None:
    chat = {"messages": [{"role": "user", "content": "w20"}]}
    request = InferRequest(
        "lm",
        {
            "messages": text_tensor("messages", json.dumps(chat)),
            "sampling_parameters": text_tensor("sampling_parameters", '{"max_tokens": 2}'),
        },
    )
    (response,) = answered(load(), responder, request)
    assert output(response, "text_output") == [b"w21 w22"]


def test_a_template_that_does_not_end_holds_up_no_other_request(
    load: Load, responder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def render(*_: Any, **__: Any) -> str:
        assert goes_on.wait(30), "the other request waits"
        return "w20"

    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "apply_chat_template", render)
    chat = text_tensor("messages", json.dumps({"messages": [{"role": "user", "content": "w20"}]}))
    load().execute([InferRequest("lm", {"messages": chat}), tokens_request(10, max_tokens=1)], responder)
    responder.wait_for_final(1)
    assert not responder.of(0)
    goes_on.set()
    responder.wait_for_final(0)


def test_tokens_may_be_repeated_too(load: Load, responder: Any) -> None:
    request = tokens_request(10, 11, max_tokens=2, outputs=("text_output",))
    repeats = Tensor("exclude_input_in_output", "BOOL", np.array([False]))
    request.inputs["exclude_input_in_output"] = repeats
    (response,) = answered(load(), responder, request)
    assert output(response, "text_output") == [b"w10 w11w12 w13"]


def test_an_answer_ends_at_a_stop_string_and_aborts_the_engine(load: Load, responder: Any, calls: Any) -> None:
    names = ("text_output", "finish_reason", "stop_reason", "num_output_tokens")
    instance = load()
    (response,) = answered(instance, responder, tokens_request(10, stop=["13 w1"], max_tokens=50, outputs=names))
    assert output(response, "text_output") == [b"w11 w12 w"]
    assert output(response, "finish_reason") == [b"stop"]
    assert output(response, "stop_reason") == [b'"13 w1"']
    # The engine's thread aborts after the answer has left, and takes the next request after that.
    answered(instance, type(responder)(), tokens_request(20, max_tokens=1))
    assert len(calls("abort")) == 1


def test_an_answer_ends_at_the_models_own_end(load: Load, responder: Any) -> None:
    names = ("text_output", "finish_reason", "stop_reason")
    instance = load()
    ended, ignored, own = answered(
        instance,
        responder,
        tokens_request(60, max_tokens=10, outputs=names),
        tokens_request(60, max_tokens=5, ignore_eos=True, outputs=names),
        tokens_request(20, max_tokens=10, stop_token_ids=[23], outputs=names),
    )
    assert output(ended, "text_output") == [b"w61 w62"]
    assert output(ended, "finish_reason") == [b"stop"]
    assert output(ended, "stop_reason") == [b"null"]
    assert output(ignored, "text_output") == [b"w61 w62 w0 w1"]
    assert output(ignored, "finish_reason") == [b"length"]
    assert output(own, "text_output") == [b"w21 w22"]


def test_further_ends_count_from_min_tokens_on(load: Load, responder: Any, calls: Any) -> None:
    instance = load(write_checkpoint, ends=[END, 22])
    early, after = answered(
        instance,
        responder,
        tokens_request(20, max_tokens=10),
        tokens_request(20, max_tokens=4, min_tokens=4, outputs=("output_ids",)),
    )
    assert output(early) == [21, 22] or output(early) == [21]
    assert output(after) == [21, 22, 23, 24]
    assert "stop_token_ids" not in calls("generate_async")[1]["sampling"]


def test_choices_are_requests_of_their_own_with_seeds_of_their_own(load: Load, responder: Any, calls: Any) -> None:
    names = ("output_ids", "sequence_length", "index")
    (response,) = answered(
        load(), responder, tokens_request(10, n=2, seed=7, temperature=0.5, top_p=0.9, max_tokens=2, outputs=names)
    )
    assert output(response, "sequence_length") == [2, 2]
    assert output(response, "output_ids") == [11, 12, 12, 14]
    drawn = [call["sampling"] for call in calls("generate_async")]
    assert [(item["seed"], item["temperature"], item["top_p"]) for item in drawn] == [(7, 0.5, 0.9), (8, 0.5, 0.9)]


def test_a_temperature_alone_draws_from_all_tokens_with_new_seeds(load: Load, responder: Any, calls: Any) -> None:
    answered(load(), responder, *(tokens_request(10, temperature=1e-3, max_tokens=1) for _ in range(2)))
    first, second = (call["sampling"] for call in calls("generate_async"))
    assert first["top_p"] == 1.0
    assert "top_k" not in first
    assert first["temperature"] == 1e-3
    assert first["seed"] != second["seed"]


def test_logprobs_have_the_chosen_token_first(load: Load, responder: Any) -> None:
    names = ("logprobs", "cumulative_logprob", "num_input_tokens", "num_cached_tokens")
    likeliest, chosen = answered(
        load(),
        responder,
        tokens_request(10, 11, logprobs=2, max_tokens=2, outputs=names),
        tokens_request(10, logprobs=0, max_tokens=1, outputs=names),
    )
    first, second = json.loads(output(likeliest, "logprobs")[0])
    assert list(first) == ["12", "13"]
    assert first["12"] == {"logprob": -0.5, "rank": 1, "decoded_token": "w12", "bytes": list(b"w12")}
    assert list(second) == ["13", "14"]
    assert output(likeliest, "cumulative_logprob") == [-1.0]
    assert output(likeliest, "num_input_tokens") == [2]
    assert output(likeliest, "num_cached_tokens") == [1]
    assert list(json.loads(output(chosen, "logprobs")[0])[0]) == ["11"]


GUIDES = [
    ({"json": {"type": "object"}}, {"json": {"type": "object"}}),
    ({"regex": "w[0-9]"}, {"regex": "w[0-9]"}),
    ({"choice": ['a"b', "ä"]}, {"grammar": 'root ::= "a\\"b" | "ä"'}),
    ({"json_object": True}, {"json_object": True}),
    ({"grammar": "root ::= x"}, {"grammar": "root ::= x"}),
]


@pytest.mark.parametrize(("outputs", "guide"), GUIDES)
def test_structured_outputs_guide_the_engine(
    outputs: dict[str, Any], guide: dict[str, Any], load: Load, responder: Any, calls: Any
) -> None:
    answered(load(), responder, tokens_request(10, max_tokens=1, structured_outputs=outputs))
    assert calls("generate_async")[0]["guide"] == guide


def test_biases_and_bad_words_and_salts_reach_the_engine(load: Load, responder: Any, calls: Any) -> None:
    request = tokens_request(
        10, max_tokens=1, logit_bias={"5": 9.5}, bad_words=["w3"], cache_salt="x", repetition_penalty=1.1
    )
    (response,) = answered(load(), responder, request)
    assert output(response) == [5]
    (call,) = calls("generate_async")
    assert call["cache_salt"] == "x"
    assert call["sampling"]["bad_words"] == [[3]]
    assert call["sampling"]["repetition_penalty"] == 1.1


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"prompt_logprobs": 1}, "has no 'prompt_logprobs' here; leave it out"),
    ({"priority": 1}, "has no 'priority' here"),
    ({"allowed_token_ids": [1]}, "has no 'allowed_token_ids' here"),
    ({"logprobs": 21}, "'logprobs' is 21, expected 0 to 20"),
    (
        {"max_tokens": 1000},
        "maximum context length is 128 tokens, but the prompt has 1 tokens, and 'max_tokens' asks for 1000",
    ),
    ({"logit_bias": {"64": 1}}, "'logit_bias' has token 64"),
    ({"min_tokens": 2, "stop_token_ids": [3]}, "has no 'min_tokens' together with 'stop_token_ids'"),
    ({"structured_outputs": {"structural_tag": "x"}}, "an engine has no 'structural_tag'"),
    ({"structured_outputs": {"regex": "x", "whitespace_pattern": " "}}, "has no options of 'structured_outputs'"),
    ({"lora_name": "other"}, "has no adapter 'other'; it has none"),
]


@pytest.mark.parametrize(("sampling", "message"), REFUSED)
def test_what_the_engine_cannot_do_is_refused_and_hinders_no_other(
    sampling: dict[str, Any], message: str, load: Load, responder: Any, calls: Any
) -> None:
    refused, served = answered(
        load(), responder, tokens_request(10, **{"max_tokens": 4, **sampling}), tokens_request(10, max_tokens=1)
    )
    assert message in refused.error.message
    assert output(served) == [11]
    assert len(calls("generate_async")) == 1


@pytest.mark.parametrize(
    ("arguments", "refused"), [("", True), ("sampler_type: TRTLLMSampler", False), ("max_seq_len: 64", True)]
)
def test_a_checkpoints_sampler_has_penalties_only_where_it_is_the_full_one(
    arguments: str, refused: bool, load: Load, responder: Any
) -> None:
    (response,) = answered(
        load(write_checkpoint, arguments=arguments), responder, tokens_request(10, max_tokens=1, presence_penalty=1)
    )
    assert (response.error is not None) is refused
    if refused:
        assert "unless llm_args.yaml has sampler_type: TRTLLMSampler" in response.error.message


def test_without_a_tokenizer_only_tokens_go_in_and_out(load: Load, responder: Any, calls: Any) -> None:
    instance = load(tokenizer=False)
    tokens, text = answered(instance, responder, tokens_request(10, max_tokens=2), text_request("w1"))
    assert output(tokens) == [11, 12]
    assert "has no tokenizer, so it takes input_ids" in text.error.message
    assert calls("LLM")[0]["tokenizer"] is None
    assert calls("generate_async")[0]["sampling"]["end_id"] == -1


def test_a_prompt_is_truncated_from_its_beginning(load: Load, responder: Any, calls: Any) -> None:
    answered(load(), responder, tokens_request(*range(10, 20), max_tokens=1, truncate_prompt_tokens=2))
    assert calls("generate_async")[0]["prompt"] == [18, 19]


def test_a_parameter_excludes_the_prompt_from_answers(load: Load, responder: Any) -> None:
    instance = load(config=pbtxt(exclude_input_in_output="true"))
    own, repeated = answered(
        instance,
        responder,
        text_request("w5", {"max_tokens": 1}),
        text_request("w5", {"max_tokens": 1}, exclude_input_in_output=False),
    )
    assert output(own, "text_output") == [b"w6"]
    assert output(repeated, "text_output") == [b"w5w6"]


def test_nothing_is_generated_without_tokens_to_generate(load: Load, responder: Any, calls: Any) -> None:
    names = ("output_ids", "finish_reason")
    (response,) = answered(load(), responder, tokens_request(10, max_tokens=0, outputs=names))
    assert output(response) == []
    assert output(response, "finish_reason") == [b"length"]
    assert not calls("generate_async")


def test_a_model_that_is_not_decoupled_does_not_stream(load: Load, responder: Any) -> None:
    (response,) = answered(
        load(config=pbtxt(decoupled=False)), responder, tokens_request(10, stream=True, max_tokens=1)
    )
    assert response.error.kind is ErrorKind.INVALID_ARG

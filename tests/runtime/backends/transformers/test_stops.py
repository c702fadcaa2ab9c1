"""Where an answer stops: at texts, at tokens, at its length; and chats, whose prompt a template makes."""

import itertools
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tests import tiny_llama
from tests.properties import examples
from tests.runtime.backends.language_model import output, pbtxt, request
from tests.runtime.language.language_requests import generation

from argosy_runtime.language import ResponseReader, StopText, token_bytes

Loader = Callable[..., Any]
OUTPUTS = ("text_output", "finish_reason", "stop_reason", "num_output_tokens")


def words(tokens: list[int]) -> str:
    return " ".join(f"w{token}" for token in tokens)


@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=4), st.lists(st.integers(0, 12)), st.booleans())
@examples(200)
def test_pieces_are_the_text_up_to_the_stop(text: str, stop: str, cuts: list[int], include: bool) -> None:
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    stopping = StopText([stop], include)
    pieces = ""
    for begin, end in itertools.pairwise(bounds):
        pieces += stopping.next(text[begin:end])
        assert not stopping.stopped_by or stopping.stopped_by == stop
        if stopping.stopped_by:
            break
    else:
        pieces += stopping.last()
    before, matched, _ = text.partition(stop)
    assert pieces == before + (matched if include else "")
    assert (stopping.stopped_by is not None) == bool(matched)


def test_the_first_of_several_stops_counts() -> None:
    stopping = StopText(["dc", "b"], False)
    assert stopping.next("aab dc") == "aa"
    assert stopping.stopped_by == "b"


def test_a_stop_text_ends_the_answer_and_ends_its_generation(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    tokens = reference(1, 2, new=8)
    stop = f"w{tokens[3]}"
    before = words(tokens[: tokens.index(tokens[3])])
    instance = shared(pbtxt(), tokenizer=True)
    requests = [
        generation(
            OUTPUTS,
            text_input="w1 w2",
            max_tokens=100,
            exclude_input_in_output=True,
            sampling_parameters=json.dumps({"stop": [stop], "include_stop_str_in_output": include}),
            stream=stream,
        )
        for include in (False, True)
        for stream in (False, True)
    ]
    instance.execute(requests, responder)
    responder.wait_for_final(0, 1, 2, 3)
    for index, expected in enumerate([before + " ", before + " ", f"{before} {stop}", f"{before} {stop}"]):
        reader = ResponseReader()
        deltas = [delta for response in responder.of(index) for delta in reader.read(response)]
        assert "".join(delta.text for delta in deltas) == expected
        assert (deltas[-1].finish_reason, deltas[-1].stop_reason) == ("stop", stop)
        assert reader.num_output_tokens[0] < 100


def test_a_stop_token_is_reported_and_not_in_the_text(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    tokens = reference(1, 2, new=8)
    end = next(token for at, token in enumerate(tokens) if at and token not in tokens[:at])
    sampling = json.dumps({"stop_token_ids": [end], "max_tokens": 20})
    prompt = {"text_input": "w1 w2", "exclude_input_in_output": True, "sampling_parameters": sampling}
    shared(pbtxt(), tokenizer=True).execute([generation(OUTPUTS, **prompt)], responder)
    responder.wait_for_final(0)
    (delta,) = ResponseReader().read(responder.only())
    assert delta.text == words(tokens[: tokens.index(end)])
    assert (delta.finish_reason, delta.stop_reason) == ("stop", end)


def test_a_text_that_comes_before_min_tokens_does_not_stop(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    tokens = reference(1, 2, new=5)
    sampling = json.dumps({"stop": f"w{tokens[0]}", "min_tokens": 4, "max_tokens": 5})
    prompt = {"text_input": "w1 w2", "exclude_input_in_output": True, "sampling_parameters": sampling}
    shared(pbtxt(), tokenizer=True).execute([generation(OUTPUTS, **prompt)], responder)
    responder.wait_for_final(0)
    (delta,) = ResponseReader().read(responder.only())
    assert delta.text.startswith(f"w{tokens[0]} ")


def test_a_model_that_is_not_decoupled_stops_and_counts_too(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    tokens = reference(1, 2, new=8)
    sampling = json.dumps({"stop": f"w{tokens[3]}", "max_tokens": 20, "n": 2, "logprobs": 0})
    prompt = {"text_input": "w1 w2", "exclude_input_in_output": True, "sampling_parameters": sampling}
    shared(pbtxt(decoupled=False), tokenizer=True).execute([generation((*OUTPUTS, "logprobs"), **prompt)], responder)
    responder.wait_for_final(0)
    choices = ResponseReader().read(responder.only())
    assert len(choices) == 2
    assert {choice.finish_reason for choice in choices} == {"stop"}
    assert all(choice.logprobs for choice in choices)


CHAT = {"messages": [{"role": "user", "content": "w5 w6"}]}
TRUSTING = pbtxt(trust_request_chat_template="true")
TEMPLATE = "{% for m in messages %}w1 {{ m.content }}{% endfor %}{% if add_generation_prompt %} w2{% endif %}"


def test_a_chat_is_the_prompt_that_its_template_makes(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    chat = json.dumps({**CHAT, "chat_template": TEMPLATE})
    request_ = generation(("output_ids", "num_input_tokens"), messages=chat, max_tokens=4)
    shared(TRUSTING, tokenizer=True).execute([request_, request(1, 5, 6, 2, new=4)], responder)
    responder.wait_for_final(0, 1)
    assert output(responder.only(0)) == output(responder.only(1)) == reference(1, 5, 6, 2, new=4)
    assert output(responder.only(0), "num_input_tokens") == [4]


def test_a_template_that_does_not_end_holds_up_no_other_request(
    shared: Loader, responder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def render(*_: Any, **__: Any) -> str:
        assert goes_on.wait(30), "the other request waits"
        return "w1"

    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "apply_chat_template", render)
    instance = shared(TRUSTING, tokenizer=True)
    chat = generation(messages=json.dumps({**CHAT, "chat_template": "{{ own }}"}), max_tokens=1)
    instance.execute([chat, generation(text_input="w1", max_tokens=1)], responder)
    responder.wait_for_final(1)
    assert not responder.of(0)
    goes_on.set()
    responder.wait_for_final(0)


def test_tokens_and_chats_may_be_repeated_too(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    chat = json.dumps({**CHAT, "chat_template": TEMPLATE})
    prompts: list[dict[str, Any]] = [{"input_ids": [1, 5, 6, 2]}, {"messages": chat}]
    repeated = {"max_tokens": 2, "exclude_input_in_output": False}
    requests = [generation(("text_output",), **prompt, **repeated) for prompt in prompts]
    shared(TRUSTING, tokenizer=True).execute(requests, responder)
    responder.wait_for_final(0, 1)
    expected = "w1 w5 w6 w2" + words(reference(1, 5, 6, 2, new=2))
    assert output(responder.only(0), "text_output") == output(responder.only(1), "text_output") == [expected.encode()]


@pytest.mark.parametrize(
    ("chat", "tokenizer", "expected"),
    [
        (CHAT, True, "has no chat template"),
        (CHAT, False, "has no tokenizer, so it takes input_ids, not messages"),
        ({**CHAT, "chat_template": "{{ raise_exception('no users') }}"}, True, "refuses the messages"),
        ({"messages": []}, True, "'messages' is empty"),
    ],
)
def test_a_chat_that_cannot_be_rendered_says_why(
    shared: Loader, responder: Any, chat: Any, tokenizer: bool, expected: str
) -> None:
    shared(TRUSTING, tokenizer=tokenizer).execute([generation(messages=json.dumps(chat))], responder)
    responder.wait_for_final(0)
    assert expected in responder.only().error.message


def test_the_bytes_of_tokens_are_those_of_the_text() -> None:
    tokenizer = tiny_llama.byte_tokenizer()
    text = "a b\né🙂"
    assert b"".join(token_bytes(tokenizer, token) for token in tokenizer.encode(text)) == text.encode()

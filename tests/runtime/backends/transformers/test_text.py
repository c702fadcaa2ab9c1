"""Text, and how it is to be made, through the transformers backend."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.backends.language_model import (
    output,
    pbtxt,
    request,
    text_request,
)

from argosy_runtime.errors import ServingError

Loader = Callable[..., Any]


def test_greedy_decoding_refuses_to_sample(shared: Loader, responder: Any, reference: Callable[..., list[int]]) -> None:
    shared(pbtxt(decoding="greedy")).execute([request(1, 2), request(1, 2, temperature=1)], responder)
    responder.wait_for_final(0, 1)
    assert output(responder.only(0)) == reference(1, 2)
    assert "decoding 'greedy' and does not sample" in responder.only(1).error.message


def test_text_goes_in_and_comes_out(shared: Loader, responder: Any, reference: Callable[..., list[int]]) -> None:
    instance = shared(pbtxt(), tokenizer=True)
    sampling = {"max_tokens": 3, "temperature": "0"}
    requests = [
        text_request("w1 w2", sampling),
        text_request("w1 w2", sampling, exclude_input_in_output=True),
        text_request("w1 w2", sampling, stream=True),
        request(1, 2, new=3),
    ]
    instance.execute(requests, responder)
    responder.wait_for_final(0, 1, 2, 3)
    words = " ".join(f"w{token}" for token in reference(1, 2, new=3))
    assert output(responder.only(0), "text_output") == [("w1 w2" + words).encode()]
    assert output(responder.only(1), "text_output") == [words.encode()]
    streamed = responder.of(2)
    assert len(streamed) == 3
    assert b"".join(output(response, "text_output")[0] for response in streamed) == words.encode()
    assert output(responder.only(3)) == reference(1, 2, new=3)


def test_sampling_parameters_may_be_the_requests_own(shared: Loader, responder: Any) -> None:
    prompt = text_request("w1", exclude_input_in_output=True)
    prompt.parameters = {"max_tokens": 2, "unrelated": "x"}
    shared(pbtxt(), tokenizer=True).execute([prompt], responder)
    responder.wait_for_final(0)
    assert len(output(responder.only(), "text_output")[0].split()) == 2


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ("{", "'sampling_parameters' is not JSON"),
        ([], "must be a JSON object"),
        ({"beam": 1}, "'beam' is not supported"),
        ({"n": 1000}, "'n' is 1000, expected 1 to 128"),
        ({"top_k": "many"}, "'top_k': expected `int"),
        ({"temperature": 1e39}, "'temperature' is 1e+39, expected 0 or more, and finite in float32"),
        ({"max_tokens": -1}, "'max_tokens' is -1"),
        ({"stop_token_ids": 3}, "'stop_token_ids': expected `array"),
    ],
)
def test_wrong_sampling_parameters_are_named(shared: Loader, responder: Any, sampling: object, expected: str) -> None:
    shared(pbtxt(), tokenizer=True).execute([text_request("w1", sampling)], responder)
    assert expected in responder.only().error.message


def test_decoding_must_be_valid(shared: Loader) -> None:
    with pytest.raises(ServingError, match="parameter 'decoding' is 'beam', expected sampling or greedy"):
        shared(pbtxt(decoding="beam"))

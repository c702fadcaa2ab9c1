"""The transformers backend: a tiny model with random weights, batched by the library for real."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.runtime.backends.language_model import (
    POSITIONS,
    VOCABULARY,
    output,
    pbtxt,
    request,
    text_request,
)

from argosy_runtime.backends import transformers as backend
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, Tensor

Loader = Callable[..., Any]


def test_requests_of_a_batch_get_what_one_alone_would(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    prompts = [(1, 2, 3), (9,), tuple(range(20))]
    assert shared().execute([request(*prompt, new=6) for prompt in prompts], responder) is None
    responder.wait_for_final(0, 1, 2)
    for index, prompt in enumerate(prompts):
        response = responder.only(index)
        assert output(response) == reference(*prompt, new=6)
        assert output(response, "sequence_length") == [6]
        assert (response.id, response.model_version) == ("r", "1")


def test_streaming_sends_every_token_once(shared: Loader, responder: Any, reference: Callable[..., list[int]]) -> None:
    shared().execute([request(5, 6, new=5, streaming=True)], responder)
    responder.wait_for_final(0)
    responses = responder.of(0)
    assert [response.final for response in responses] == [False] * 4 + [True]
    assert [token for response in responses for token in output(response)] == reference(5, 6, new=5)


def test_one_answer_per_request_where_the_model_is_not_decoupled(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    instance = shared(pbtxt(decoupled=False))
    instance.execute([request(1, 2, new=6), request(1, 2, new=6, streaming=True), request(5, new=2)], responder)
    responder.wait_for_final(0, 1, 2)
    assert output(responder.only(0)) == reference(1, 2, new=6)
    assert output(responder.only(2)) == reference(5, new=2)
    error = responder.only(1).error
    assert (error.kind, error.message) == (
        ErrorKind.INVALID_ARG,
        "Streaming is only supported in decoupled mode.",
    )


def test_a_slow_client_gets_all_and_keeps_no_one_waiting(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    responder.paused.add(0)
    shared().execute([request(1, 2, new=6, streaming=True), request(3, new=6, streaming=True)], responder)
    responder.wait_for_final(0, 1)
    assert output(responder.only(0)) == reference(1, 2, new=6)
    assert [output(response) for response in responder.of(1)] == [[token] for token in reference(3, new=6)]


def test_a_later_request_joins_the_running_batch(shared: Loader, responder: Any) -> None:
    instance = shared()
    started, joined = threading.Event(), threading.Event()
    ends: list[str] = []

    def first(index: int, response: Any) -> None:
        started.set()
        assert joined.wait(30)
        ends.extend(["first"] * response.final)
        type(responder).send(responder, index, response)

    def later(index: int, response: Any) -> None:
        ends.extend(["later"] * response.final)
        type(responder).send(second, index, response)

    second = type(responder)()
    responder.send, second.send = first, later
    instance.execute([request(1, new=100, streaming=True)], responder)
    assert started.wait(30)
    instance.execute([request(2, new=2)], second)
    joined.set()
    second.wait_for_final(0)
    responder.wait_for_final(0)
    assert ends == ["later", "first"]


def test_the_end_id_ends(shared: Loader, responder: Any, reference: Callable[..., list[int]]) -> None:
    full = reference(1, 2, 3, new=8)
    shared().execute([request(1, 2, 3, new=8, end_id=full[2]), request(1, 2, 3, new=8, end_id=-1)], responder)
    responder.wait_for_final(0, 1)
    assert output(responder.only(0)) == full[: full.index(full[2]) + 1]
    assert output(responder.only(1)) == full


def test_nothing_requested_is_answered_at_once(shared: Loader, responder: Any) -> None:
    shared().execute([request(1, new=0)], responder)
    assert output(responder.only()) == []
    assert output(responder.only(), "sequence_length") == [0]


def test_int64_ids_are_as_good(shared: Loader, responder: Any, reference: Callable[..., list[int]]) -> None:
    int64_ids = request(1, 2)
    int64_ids.inputs["input_ids"] = Tensor("input_ids", "INT64", np.array([1, 2]))
    int64_ids.requested_outputs = ("output_ids",)
    shared().execute([int64_ids], responder)
    responder.wait_for_final(0)
    assert output(responder.only()) == reference(1, 2)
    assert [tensor.name for tensor in responder.only().outputs] == ["output_ids"]


def test_sampling_is_every_requests_own(shared: Loader, responder: Any, reference: Callable[..., list[int]]) -> None:
    requests = [
        request(1, 2, new=8),
        request(1, 2, new=8, temperature=0.0),
        request(1, 2, new=8, temperature=5.0, top_k=1),
        request(1, 2, new=8, temperature=5.0, top_p=1e-6),
        *[request(1, 2, new=8, temperature=5.0) for _ in range(4)],
    ]
    shared().execute(requests, responder)
    responder.wait_for_final(*range(len(requests)))
    likeliest = reference(1, 2, new=8)
    assert [output(responder.only(index)) for index in range(4)] == [likeliest] * 4
    assert any(output(responder.only(index)) != likeliest for index in range(4, 8))


@pytest.mark.parametrize("temperature", [1e-40, 1e-45])
def test_a_tiny_temperature_is_the_likeliest_token_and_the_batch_goes_on(
    own: Any, responder: Any, reference: Callable[..., list[int]], temperature: float
) -> None:
    own.execute([request(1, 2, temperature=temperature), request(1, 2)], responder)
    responder.wait_for_final(0, 1)
    own.close()
    assert [output(responder.only(index)) for index in range(2)] == [reference(1, 2)] * 2


@pytest.mark.parametrize("greedy", [{}, {"temperature": 0.0}, {"temperature": 5.0, "top_k": 1}])
def test_of_tokens_equally_likely_the_greedy_one_is_the_first(
    tied: Any, responder: Any, greedy: dict[str, Any]
) -> None:
    tied.execute([request(1, 2, **greedy), request(1, 2, temperature=1.0)], responder)
    responder.wait_for_final(0, 1)
    assert output(responder.only(0)) == [0] * 4
    assert output(responder.only(1)) != [0] * 4


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (request(), "the prompt is empty"),
        (request(1, VOCABULARY), "input id 64 is not in the vocabulary of 64 tokens"),
        (
            request(1, new=POSITIONS),
            "maximum context length is 48 tokens, but the prompt has 1 tokens, and 'max_tokens' asks for 128",
        ),
        (
            request(1, new=60),
            "ask for at most 47; its cache holds no more, so raise the parameter kv_cache_memory or num_blocks",
        ),
        (request(1, new=-1), "'max_tokens' is -1, expected 0 to 2147483647"),
        (request(1, temperature=-1), "'temperature' is -1, expected 0 or more"),
        (request(1, temperature=np.inf), "'temperature' is inf, expected 0 or more, and finite in float32"),
        (request(1, temperature=np.nan), "'temperature' is nan, expected 0 or more, and finite in float32"),
        (request(1, top_k=-2), r"'top_k' is -2, expected -1 or 0 \(off\), or at most 2147483647"),
        (request(1, top_p=1.5), "'top_p' is 1.5, expected more than 0 and at most 1"),
        (InferRequest("lm", {}), "takes one of the inputs text_input, input_ids, messages: none of them is there"),
        (text_request("w1"), "has no tokenizer, so it takes input_ids, not text_input"),
    ],
)
def test_what_cannot_be_is_refused_and_the_others_go_on(
    shared: Loader, responder: Any, wrong: InferRequest, expected: str
) -> None:
    instance = shared(pbtxt(num_blocks="12"))
    instance.execute([wrong, request(1)], responder)
    responder.wait_for_final(0, 1)
    with pytest.raises(ServingError, match=expected):
        raise responder.only(0).error
    assert len(output(responder.only(1))) == 4


def test_more_requests_than_the_cache_holds_take_turns(
    shared: Loader, responder: Any, reference: Callable[..., list[int]]
) -> None:
    instance = shared(pbtxt(num_blocks="12"))
    instance.execute([request(index, new=40) for index in range(4)], responder)
    responder.wait_for_final(*range(4))
    assert [output(responder.only(index)) for index in range(4)] == [reference(n, new=40) for n in range(4)]


def test_how_the_engine_gets_on_is_reported(own: Any, host: Any, responder: Any) -> None:
    own.execute([request(1, 2, new=5), request(3, new=40)], responder)
    responder.wait_for_final(0, 1)
    own.close()
    first, last = host.states[0], host.states[-1]
    assert (first.prompt_tokens, first.generated_tokens) == (0, 0)
    assert (last.prompt_tokens, last.generated_tokens) == (3, 45)
    assert (last.waiting, last.running) == (0, 0)
    assert last.cache is not None
    assert 0 <= last.cache < 1
    assert last.cache_tokens == 4 * 64


def test_a_client_that_left_is_dropped(shared: Loader, responder: Any) -> None:
    instance = shared()
    responder.cancelled.add(0)
    instance.execute([request(1, new=120), request(2, new=3)], responder)
    responder.wait_for_final(0, 1)
    assert len(output(responder.only(1))) == 3
    last = responder.of(0)[-1]
    assert last.error is None or last.error.kind is ErrorKind.CANCELLED


def test_a_dead_batch_fails_its_requests_and_later_ones(own: Any, responder: Any) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("device lost")

    own._engine._manager._generation_step = broken
    own.execute([request(1), request(2)], responder)
    responder.wait_for_final(0, 1)
    assert "device lost" in responder.only(0).error.message
    later = type(responder)()
    own.execute([request(3)], later)
    later.wait_for_final(0)
    assert later.only().error.kind in (ErrorKind.UNAVAILABLE, ErrorKind.INTERNAL)
    own.close()


def test_a_dead_batch_gives_its_instance_up_once(own: Any, host: Any, responder: Any) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("device lost")

    own._engine._manager._generation_step = broken
    own.execute([request(1)], responder)
    responder.wait_for_final(0)
    assert "no longer generates: device lost" in host.losses.get(timeout=30).message
    own.close()
    assert host.losses.empty()


def test_an_unloaded_instance_is_not_lost(own: Any, host: Any, responder: Any) -> None:
    own.execute([request(1)], responder)
    responder.wait_for_final(0)
    own.close()
    assert host.losses.empty()


@pytest.mark.parametrize("decoding", ["sampling", "greedy"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_fail_their_request_alone(
    model_folder: Callable[[str], Any],
    host: Any,
    responder: Any,
    reference: Callable[..., list[int]],
    saved: Path,
    decoding: str,
    value: float,
) -> None:
    folder = model_folder(pbtxt(decoding=decoding))
    model = transformers.LlamaForCausalLM.from_pretrained(saved)
    with torch.no_grad():
        model.get_input_embeddings().weight[VOCABULARY - 1].fill_(value)
    model.save_pretrained(folder.version_dir)
    instance = backend.load(folder.spec(), host)
    requests = [request(VOCABULARY - 1), request(1, VOCABULARY - 1, streaming=True, end_id=3), request(1, 2)]
    for index, one in enumerate(requests):
        instance.execute([one], single := type(responder)())
        single.wait_for_final(0)
        responder.sent += [(index, response) for _, response in single.sent]
    instance.close()
    for index in range(2):
        error = responder.only(index).error
        assert error.kind is ErrorKind.INTERNAL
        assert "its logits are not finite (NaN or infinite) after 0 new tokens" in error.message
    assert output(responder.only(2)) == reference(1, 2)
    assert host.losses.empty()


def test_unloading_fails_what_still_runs(own: Any, responder: Any) -> None:
    own.execute([request(1, new=120)], responder)
    own.close()
    responder.wait_for_final(0)
    error = responder.only().error
    assert error is None or "is being unloaded" in error.message

"""How tokens are chosen: seeds, ends, log probabilities."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.runtime.backends.language_model import make_greedy, output, pbtxt, request
from tests.runtime.language.language_requests import generation

from argosy_runtime.backends.transformers.sampling.processors import Noise
from argosy_runtime.backends.transformers.sampling.seeds import Seeds, key_of, number_at
from argosy_runtime.errors import ErrorKind
from argosy_runtime.language import Delta, ResponseReader

Loader = Callable[..., Any]


def deltas(responder: Any, index: int = 0) -> list[Delta]:
    """Return the deltas of all responses of a request."""
    reader = ResponseReader()
    return [delta for response in responder.of(index) for delta in reader.read(response)]


def test_a_seed_decides_the_tokens_whatever_else_is_in_the_batch(shared: Loader, responder: Any) -> None:
    alone = request(1, 2, new=12, temperature=2.0, random_seed=7)
    shared().execute([alone], responder)
    responder.wait_for_final(0)
    crowd = type(responder)()
    others = [request(3, 4, new=12, temperature=2.0, random_seed=seed) for seed in range(5)]
    shared().execute([*others, alone, request(1, 2, new=12, temperature=2.0, random_seed=8)], crowd)
    crowd.wait_for_final(*range(7))
    assert output(crowd.only(5)) == output(responder.only())
    assert output(crowd.only(6)) != output(responder.only())


def test_requests_without_a_seed_differ_unless_the_model_has_one(shared: Loader, responder: Any) -> None:
    shared().execute([request(1, 2, new=12, temperature=5.0) for _ in range(2)], responder)
    responder.wait_for_final(0, 1)
    assert output(responder.only(0)) != output(responder.only(1))
    draws = [[seeds.next() for _ in range(3)] for seeds in (Seeds(5), Seeds(5), Seeds(6), Seeds(-1), Seeds(-1))]
    assert draws[0] == draws[1]
    assert len({tuple(draw) for draw in draws}) == 4


def test_samples_have_the_distribution_of_the_scores() -> None:
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05, 0.0])
    draws = 20_000
    numbers = torch.tensor([number_at(key_of(3, 0), position) for position in range(draws)], dtype=torch.int32)
    scores = Noise()(probabilities.log().expand(draws, 5), numbers)
    counts = Counter(scores.argmax(dim=-1).tolist())
    assert counts[4] == 0
    for token, probability in enumerate(probabilities.tolist()[:4]):
        deviation = math.sqrt(probability * (1 - probability) / draws)
        assert abs(counts[token] / draws - probability) < 4 * deviation


def test_the_noise_of_a_key_is_independent_of_the_other_rows() -> None:
    scores = torch.zeros(3, 64)
    numbers = torch.tensor([0, 5, 9], dtype=torch.int32)
    together = Noise()(scores, numbers)
    assert torch.equal(together[0], scores[0])
    assert torch.equal(together[2:], Noise()(scores[:1], numbers[2:]))
    assert not torch.equal(together[1], together[2])


def test_no_end_comes_before_min_tokens(shared: Loader, responder: Any, reference: Callable[..., list[int]]) -> None:
    end = reference(1, 2, 3, new=8)[0]
    ended = generation(input_ids=[1, 2, 3], max_tokens=8, end_id=end)
    later = generation(input_ids=[1, 2, 3], max_tokens=8, end_id=end, min_tokens=3)
    shared().execute([ended, later], responder)
    responder.wait_for_final(0, 1)
    assert output(responder.only(0)) == [end]
    tokens = output(responder.only(1))
    assert end not in tokens[:3]
    assert len(tokens) > 3


def test_the_models_own_end_waits_for_min_tokens_too(
    model_folder: Callable[[str], Any], host: Any, responder: Any, saved: Path, reference: Callable[..., list[int]]
) -> None:
    from argosy_runtime.backends import transformers as backend

    full = reference(1, 2, new=8)
    folder = model_folder(pbtxt())
    model = transformers.LlamaForCausalLM.from_pretrained(saved)
    model.generation_config.eos_token_id = full[0]
    model.generation_config.temperature = None
    model.save_pretrained(folder.version_dir)
    make_greedy(folder.version_dir)
    instance = backend.load(folder.spec(), host)
    outputs = ("output_ids", "finish_reason", "stop_reason")
    requests = [
        generation(outputs, input_ids=[1, 2], max_tokens=8),
        generation(outputs, input_ids=[1, 2], max_tokens=8, min_tokens=4),
        generation(outputs, input_ids=[1, 2], max_tokens=8, sampling_parameters='{"ignore_eos": true}'),
    ]
    instance.execute(requests, responder)
    responder.wait_for_final(0, 1, 2)
    instance.close()
    (first,), (second,), (third,) = (deltas(responder, index) for index in range(3))
    assert (first.token_ids, first.finish_reason, first.stop_reason) == ([full[0]], "stop", None)
    assert full[0] not in second.token_ids[:4]
    assert len(second.token_ids) > 4
    assert (third.token_ids, third.finish_reason) == (full, "length")


def test_logprobs_are_the_models_own(shared: Loader, responder: Any, saved: Path) -> None:
    outputs = ("output_ids", "logprobs", "cumulative_logprob")
    parameters = '{"logprobs": 3, "temperature": 5, "top_k": 9, "seed": 3, "max_tokens": 5}'
    plain = generation(("output_ids", "cumulative_logprob"), input_ids=[1, 2, 3], max_tokens=5)
    shared().execute([generation(outputs, input_ids=[1, 2, 3], sampling_parameters=parameters), plain], responder)
    responder.wait_for_final(0, 1)
    (delta,) = deltas(responder)
    model = transformers.LlamaForCausalLM.from_pretrained(saved)
    logits = model(torch.tensor([[1, 2, 3, *delta.token_ids]])).logits[0, 2:-1]
    expected = logits.log_softmax(dim=-1)
    assert delta.logprobs is not None
    for position, token, row in zip(delta.logprobs, delta.token_ids, expected, strict=True):
        assert next(iter(position)) == token
        assert position[token].rank == int((row > row[token]).sum()) + 1
        best = row.topk(3).indices.tolist()
        assert set(position) == {token, *best}
        for other, entry in position.items():
            assert entry.logprob == pytest.approx(row[other].item(), abs=1e-4)
    chosen = [position[token].logprob for position, token in zip(delta.logprobs, delta.token_ids, strict=True)]
    assert delta.cumulative_logprob == pytest.approx(sum(chosen), abs=1e-4)
    (second,) = deltas(responder, 1)
    assert second.cumulative_logprob is not None
    assert second.logprobs is None


def test_choices_of_a_request_differ(shared: Loader, responder: Any) -> None:
    outputs = ("output_ids", "sequence_length", "index", "finish_reason", "num_input_tokens", "num_output_tokens")
    parameters = '{"n": 3, "temperature": 5, "seed": 1, "max_tokens": 6}'
    unary, streamed = (
        generation(outputs, input_ids=[1, 2], sampling_parameters=parameters, stream=stream) for stream in (False, True)
    )
    shared().execute([unary, streamed], responder)
    responder.wait_for_final(0, 1)
    choices = ResponseReader().read(responder.only(0))
    assert [choice.index for choice in choices] == [0, 1, 2]
    assert len({tuple(choice.token_ids) for choice in choices}) == 3
    joined: dict[int, list[int]] = {0: [], 1: [], 2: []}
    reader = ResponseReader()
    for response in responder.of(1):
        (delta,) = reader.read(response)
        joined[delta.index] += delta.token_ids
    assert joined == {choice.index: choice.token_ids for choice in choices}
    assert (reader.num_input_tokens, reader.num_output_tokens) == (2, {0: 6, 1: 6, 2: 6})


def test_cached_tokens_are_those_of_the_prefix_cache(shared: Loader, responder: Any) -> None:
    prompt = list(range(20, 33))
    for _ in range(2):
        responder.sent.clear()
        shared().execute([generation(("num_cached_tokens",), input_ids=prompt, max_tokens=2)], responder)
        responder.wait_for_final(0)
    assert output(responder.only(), "num_cached_tokens") == [12]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ('{"presence_penalty": 1}', "presence_penalty"),
        ('{"repetition_penalty": 1.5}', "repetition_penalty"),
        ('{"logit_bias": {"3": 1}}', "logit_bias"),
        ('{"structured_outputs": {"json_object": true}}', "structured_outputs"),
        ('{"lora_name": "a"}', "lora_name"),
        ('{"prompt_logprobs": 1}', "prompt_logprobs"),
        ('{"min_tokens": 1, "stop_token_ids": [3, 4]}', "min_tokens"),
        ('{"stop": "x"}', "stop_token_ids"),
        ('{"logprobs": 21}', "logprobs"),
    ],
)
def test_what_the_backend_lacks_is_refused_by_name(shared: Loader, responder: Any, parameters: str, name: str) -> None:
    shared().execute([generation(input_ids=[1], sampling_parameters=parameters)], responder)
    error = responder.only().error
    assert error.kind in (ErrorKind.UNSUPPORTED, ErrorKind.INVALID_ARG)
    assert name in error.message


def test_parameters_that_ask_for_nothing_are_taken(shared: Loader, responder: Any) -> None:
    parameters = '{"presence_penalty": 0, "repetition_penalty": 1, "min_p": 0, "logit_bias": {}, "priority": 0}'
    shared().execute([generation(input_ids=[1], sampling_parameters=parameters)], responder)
    responder.wait_for_final(0)
    assert responder.only().error is None


@pytest.mark.parametrize(("length", "left"), [(3, 3), (-1, 108), (50, 50)])
def test_a_prompt_is_cut_off_at_its_beginning(shared: Loader, responder: Any, length: int, left: int) -> None:
    parameters = f'{{"truncate_prompt_tokens": {length}, "max_tokens": 20}}'
    outputs = ("num_input_tokens",)
    prompt = list(range(60)) * 2
    shared().execute([generation(outputs, input_ids=prompt, sampling_parameters=parameters)], responder)
    responder.wait_for_final(0)
    assert output(responder.only(), "num_input_tokens") == [left]

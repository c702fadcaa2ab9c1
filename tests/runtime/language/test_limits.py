"""What fits a context, which no backend decides by itself."""

import pytest

from argosy_runtime.backends.tensorrtllm import sampling as tensorrtllm
from argosy_runtime.backends.transformers import generation as reference
from argosy_runtime.backends.vllm.requests.sampling import sampling_arguments
from argosy_runtime.errors import ServingError
from argosy_runtime.language import GenerationRequest, Sampling, Tokens
from argosy_runtime.language.limits import answer_length, check_tokens, truncated

CONTEXT = 100


def of_vllm(sampling: Sampling, length: int) -> int:
    return int(sampling_arguments(sampling, length, CONTEXT)["max_tokens"])


def of_tensorrtllm(sampling: Sampling, length: int) -> int:
    abilities = tensorrtllm.Abilities(256, CONTEXT, frozenset(), True, "", False, True)
    return tensorrtllm.generation(_request(sampling), [1] * length, abilities).max_new_tokens


def of_transformers(sampling: Sampling, length: int) -> int:
    abilities = reference.Abilities(256, CONTEXT, frozenset(), True, True, True)
    return reference.generation(_request(sampling), [1] * length, abilities, 0).max_new_tokens


def _request(sampling: Sampling) -> GenerationRequest:
    return GenerationRequest("m", "", Tokens([1]), False, sampling, ("output_ids",))


@pytest.mark.parametrize("backend", [of_vllm, of_tensorrtllm, of_transformers])
def test_every_backend_shortens_the_default_and_refuses_a_demand(backend):
    assert backend(Sampling(), 10) == 16
    assert backend(Sampling(), 95) == 5
    assert backend(Sampling(max_tokens=None), 10) == 90
    assert backend(Sampling(max_tokens=90), 10) == 90
    message = (
        "this model's maximum context length is 100 tokens, but the prompt has 95 tokens, and 'max_tokens' asks for 6; "
        "ask for at most 5"
    )
    with pytest.raises(ServingError, match=message):
        backend(Sampling(max_tokens=6), 95)
    with pytest.raises(ServingError, match="'max_tokens' asks for 16; ask for at most 5"):
        backend(Sampling(max_tokens=16), 95)
    with pytest.raises(ServingError, match="but the prompt has 100 tokens, and the answer at least 1"):
        backend(Sampling(max_tokens=None), 100)
    with pytest.raises(ServingError, match="the prompt is empty"):
        backend(Sampling(), 0)


def test_a_model_may_have_a_limit_of_its_own():
    assert answer_length(Sampling(max_tokens=None), 10, CONTEXT, 40) == 40
    assert answer_length(Sampling(max_tokens=None), 90, CONTEXT, 40) == 10
    assert answer_length(Sampling(max_tokens=0), 99, CONTEXT) == 0


@pytest.mark.parametrize(("token", "vocabulary"), [(5, 5), (-1, 5), (-1, 0)])
def test_a_prompt_has_tokens_of_the_vocabulary(token, vocabulary):
    check_tokens([0, 4], vocabulary)
    with pytest.raises(ServingError, match=f"input id {token} is not in the vocabulary"):
        check_tokens([0, token], vocabulary)


@pytest.mark.parametrize(
    ("limit", "max_tokens", "left"), [(None, 5, 200), (3, 5, 3), (-1, 5, 95), (-1, None, 99), (-1, 400, 1)]
)
def test_a_prompt_is_cut_at_its_beginning(limit, max_tokens, left):
    ids = list(range(200))
    sampling = Sampling(truncate_prompt_tokens=limit, max_tokens=max_tokens)
    assert truncated(ids, sampling, CONTEXT) == ids[200 - left :]
    assert truncated(ids, Sampling(truncate_prompt_tokens=-1), 0) == ids

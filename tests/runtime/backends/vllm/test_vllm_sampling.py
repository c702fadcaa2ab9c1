"""Sampling parameters in vLLM's terms."""

from typing import Any

import pytest

from argosy_runtime.backends.vllm.requests.sampling import duplicates, sampling_arguments
from argosy_runtime.errors import ServingError
from argosy_runtime.language import Sampling


def arguments(sampling: Sampling, length: int = 10, longest: int = 100, default: int | None = None) -> dict[str, Any]:
    """Return vLLM's arguments that are not its defaults, or are what a test looks at."""
    return sampling_arguments(sampling, length, longest, default)


@pytest.mark.parametrize(
    ("max_tokens", "default", "expected"),
    [(5, None, 5), (0, None, 1), (None, None, 90), (None, 40, 40), (None, 400, 90), (90, 40, 90)],
)
def test_an_answer_ends_where_the_context_does(max_tokens, default, expected):
    assert arguments(Sampling(max_tokens=max_tokens), default=default)["max_tokens"] == expected


def test_the_default_is_shortened_and_a_demand_is_refused():
    assert arguments(Sampling(), length=95)["max_tokens"] == 5
    with pytest.raises(ServingError, match="this model's maximum context length is 100 tokens, but the prompt has 95"):
        arguments(Sampling(max_tokens=6), length=95)


def test_choices_of_the_likeliest_tokens_are_one():
    greedy = Sampling(n=4, temperature=0.0)
    made = arguments(greedy)
    assert (made["n"], duplicates(greedy, made)) == (1, 4)
    made = arguments(Sampling(n=4, temperature=1.0))
    assert (made["n"], duplicates(Sampling(n=4), made)) == (4, 1)


def test_a_temperature_close_to_zero_is_zero():
    assert arguments(Sampling(temperature=1e-9))["temperature"] == 0.0
    assert arguments(Sampling(temperature=1e-4))["temperature"] == 1e-4


def test_values_are_brought_into_vllms_ranges():
    made = arguments(Sampling(seed=2**64 - 2, logit_bias={1: 500.0, 2: -500.0, 3: 1.0}, stop="x"))
    assert made["seed"] == -2
    assert made["logit_bias"] == {1: 100.0, 2: -100.0, 3: 1.0}
    assert made["stop"] == ["x"]

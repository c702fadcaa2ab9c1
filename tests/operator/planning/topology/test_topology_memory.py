"""What published models take of a GPU: weights, cache, workspace, and how many sequences fit in the rest."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.topology.shapes import GIB, shape

from argosy.planning.topology.memory import (
    CONTEXT,
    Split,
    active_parameters,
    budget,
    cache_per_token,
    kv_heads,
    weights,
    workspace,
)

MODELS = ["llama-3-8b", "llama-3-70b", "mixtral-8x7b", "qwen2.5-7b", "qwen2.5-0.5b", "qwen3-8b", "qwen3-30b-a3b"]


@pytest.mark.parametrize(
    ("model", "split", "gib"),
    [
        ("llama-3-8b", Split(), 14.96),  # as vLLM logs of the same weights
        ("llama-3-70b", Split(), 131.42),
        ("llama-3-70b", Split(tensor=2), 65.71),
        ("llama-3-70b", Split(tensor=4), 32.85),
        ("llama-3-70b", Split(tensor=8), 16.43),
        ("mixtral-8x7b", Split(tensor=2), 43.5),
        ("qwen2.5-7b", Split(), 14.19),
        ("qwen3-30b-a3b", Split(), 56.87),
        ("llama-3-70b", Split(tensor=2, weight_bits=8), 33.83),  # the tables of 1.96 GiB a GPU stay at 16 bits
        ("llama-3-8b", Split(weight_bits=4), 5.31),
    ],
)
def test_weights_of_every_gpu(model: str, split: Split, gib: float) -> None:
    assert weights(shape(model), split) / GIB == pytest.approx(gib, rel=0.01)


@pytest.mark.parametrize(
    ("model", "split", "size"),
    [
        ("llama-3-8b", Split(), 128 * 1024),
        ("llama-3-8b", Split(cache_bits=8), 64 * 1024),
        ("llama-3-70b", Split(), 320 * 1024),
        ("llama-3-70b", Split(tensor=8), 40 * 1024),
        ("llama-3-70b", Split(tensor=16), 40 * 1024),  # eight KV heads: more GPUs repeat them
        ("llama-3-70b", Split(tensor=2, pipeline=2), 80 * 1024),
        ("mixtral-8x7b", Split(), 128 * 1024),
        ("qwen2.5-7b", Split(), 56 * 1024),
        ("qwen3-8b", Split(), 147_456),
        ("qwen3-30b-a3b", Split(), 96 * 1024),
    ],
)
def test_cache_of_a_token(model: str, split: Split, size: int) -> None:
    assert cache_per_token(shape(model), split) == size


def test_sequences_in_what_is_left() -> None:
    result = budget(shape("llama-3-70b"), Split(tensor=4, length=8192), 72 * GIB)
    assert result.sequence == 80 * 1024 * 8192
    assert result.left == 72 * GIB - result.weights - result.workspace
    assert result.sequences == result.left // result.sequence == 60


def test_nothing_is_left_of_a_gpu_that_is_too_small() -> None:
    result = budget(shape("llama-3-70b"), Split(length=8192), 80 * GIB)
    assert (result.left, result.sequences) == (0, 0)
    assert result.needed > 131 * GIB


def test_an_engines_own_size_counts_where_it_is_recorded() -> None:
    built = replace(shape("llama-3-70b"), weight_bytes=72 * GIB)
    assert weights(built, Split(tensor=2)) == 36 * GIB


def test_the_fullest_stage_counts() -> None:
    """80 layers over 3 stages: the first has 27 and a table."""
    llama = shape("llama-3-70b")
    layer = (llama.parameters - llama.embedding_parameters) / 80
    assert weights(llama, Split(pipeline=3)) == pytest.approx(2 * (27 * layer + 128256 * 8192), rel=1e-6)


def test_a_mixture_is_stored_in_full_and_passed_in_part() -> None:
    """Mixtral's authors give 12.9 billion active parameters, Qwen3-30B-A3B's 3.3 billion."""
    assert active_parameters(shape("mixtral-8x7b")) == pytest.approx(12.9e9, rel=0.01)
    assert active_parameters(shape("qwen3-30b-a3b")) == pytest.approx(3.35e9, rel=0.01)


def test_workspace_shrinks_with_the_tokens_of_a_step_and_with_gpus() -> None:
    llama = shape("llama-3-70b")
    usual = workspace(llama, Split())
    assert CONTEXT < workspace(llama, Split(step_tokens=1024)) < workspace(llama, Split(tensor=4)) < usual < 4 * GIB


@given(
    model=st.sampled_from(MODELS),
    tensor=st.integers(1, 16),
    pipeline=st.integers(1, 8),
    bits=st.sampled_from([4, 8, 16]),
    more=st.integers(1, 8),
)
def test_more_gpus_never_take_more_of_any(model: str, tensor: int, pipeline: int, bits: int, more: int) -> None:
    one, split = shape(model), Split(tensor, pipeline, bits, length=4096)
    wider = replace(split, tensor=tensor + more)
    assert weights(one, wider) <= weights(one, split)
    assert cache_per_token(one, wider) <= cache_per_token(one, split)
    assert kv_heads(one, tensor) * tensor >= one.key_value_heads
    # all GPUs of the first stage together hold what one GPU would, or more
    assert tensor * pipeline * weights(one, split) * 1.000001 >= weights(one, replace(split, tensor=1, pipeline=1))

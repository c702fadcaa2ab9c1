"""Prompts have exactly the requested tokens, whatever tokenizer counts them."""

import json
from collections.abc import Callable
from random import Random

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tests import tiny_tokenizers

from argosy.bench.prompts import WORDS, PromptError, Vocabulary, samples
from argosy.bench.work import Api, Work, count_body, load_body


def byte_level() -> Callable[[str], int]:
    made = tiny_tokenizers.byte_level()
    return lambda text: len(made.encode(text).ids)


def unigram() -> Callable[[str], int]:
    """Return a tokenizer of sentencepiece's kind, that knows half of the words, and letters."""
    pieces = ["<unk>", *(f"▁{word}" for word in WORDS[::2]), "▁", *"abcdefghijklmnopqrstuvwxyzI"]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram([(piece, -len(piece)) for piece in pieces], 0, False))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    return lambda text: 1 + len(made.encode(text).ids)


def tokenizer_of_words(text: str) -> int:
    return len(text.split())


COUNTERS = {"words": tokenizer_of_words, "bytes": byte_level(), "unigram": unigram()}


@pytest.mark.parametrize("name", COUNTERS)
@given(tokens=st.integers(12, 700), seed=st.integers(0, 5))
def test_the_tokens_are_those_requested(name: str, tokens: int, seed: int) -> None:
    count = COUNTERS[name]
    words = Vocabulary.of([count(text) for text in samples()])
    assert count(words.prompt(tokens, Random(seed))) == tokens


def test_prompts_differ_and_a_seed_repeats_them() -> None:
    words = Vocabulary.of([tokenizer_of_words(text) for text in samples()])
    first, again = Random("1"), Random("1")
    prompts = [words.prompt(64, first) for _ in range(200)]
    assert len(set(prompts)) == 200
    assert prompts == [words.prompt(64, again) for _ in range(200)]


def test_words_whose_count_depends_on_neighbours_are_left_out() -> None:
    def count(text: str) -> int:
        return len(text.split()) - text.count("a a")

    words = Vocabulary.of([count(text) for text in samples()])
    assert "a" not in words.tokens
    assert set(words.tokens) == {*WORDS} - {"a"}


def test_an_endpoint_that_counts_nothing_is_refused() -> None:
    with pytest.raises(PromptError, match="no word has the same number of tokens"):
        Vocabulary.of([5 for _ in samples()])


def test_a_length_that_no_words_have_is_refused() -> None:
    with pytest.raises(PromptError, match=r"no prompt of 8 tokens .* the endpoint adds 7"):
        Vocabulary(7, {"a": 2, "sun": 3}).prompt(8, Random(0))


def test_the_body_requests_the_tokens_and_nothing_ends_it_early() -> None:
    body = json.loads(load_body(Work(9, 64), "llama", "the sun"))
    assert body == {
        "model": "llama",
        "prompt": "the sun",
        "temperature": 0,
        "max_tokens": 64,
        "min_tokens": 64,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert json.loads(count_body(Api.CHAT, "llama", "the sun")) == {
        "model": "llama",
        "messages": [{"role": "user", "content": "the sun"}],
        "temperature": 0,
        "max_tokens": 1,
    }

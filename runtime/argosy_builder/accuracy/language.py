"""Perplexity: how surprised a language model is by text that people wrote."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from argosy_builder.contract import Array, Runner

IDS, MASK, LOGITS = "input_ids", "attention_mask", "logits"
"""The tensors by which a language model is asked for the likelihood of tokens."""


@runtime_checkable
class LanguageRunner(Protocol):
    """A language model that reads text itself."""

    def log_likelihood(self, text: str) -> tuple[float, int]:
        """Return the natural logarithm of the probability of a text's tokens but the first, and how many those are."""


def token_log_likelihood(logits: Array, ids: Array, mask: Array | None = None) -> tuple[float, int]:
    """Return the same from `logits` [tokens, vocabulary], each of which foretells the token after, and the tokens
    `ids`.

    A token whose `mask` is 0 does not count.
    """
    foretold, real = logits[:-1].astype(np.float64), ids[1:]
    shifted = foretold - foretold.max(axis=-1, keepdims=True)
    logs = shifted[np.arange(len(real)), real] - np.log(np.exp(shifted).sum(axis=-1))
    included = np.ones(len(real), bool) if mask is None else mask[1:].astype(bool)
    return float(logs[included].sum()), int(included.sum())


def perplexity(likelihoods: Sequence[tuple[float, int]]) -> float:
    """Return the perplexity of all texts together: e to the mean negative log-likelihood of a token; infinite where
    that is too large.
    """
    tokens = sum(count for _, count in likelihoods)
    mean = -sum(likelihood for likelihood, _ in likelihoods) / tokens
    return math.exp(mean) if mean < math.log(1e300) else math.inf


class _Memoized:
    """A language model that has read all texts that it will be asked for."""

    def __init__(self, read: Mapping[str, tuple[float, int]]) -> None:
        self._read = read

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Refuse tensors, as the runner is closed."""
        raise KeyError(*inputs)

    def log_likelihood(self, text: str) -> tuple[float, int]:
        """Return the log-likelihood of a text and the number of its tokens."""
        return self._read[text]


def memoized(runner: Runner, texts: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> Runner:
    """Return a runner that has read the texts, to be asked once `runner` is closed; one that reads none, as it is.

    `progress` receives the number of texts that it has read.
    """
    if not isinstance(runner, LanguageRunner):
        return runner
    read = {}
    for at, text in enumerate(texts, 1):
        read[text] = runner.log_likelihood(text)
        progress(at)
    return _Memoized(read)


def answered(row: Mapping[str, Array], answer: Mapping[str, Array]) -> tuple[float, int]:
    """Return the log-likelihood of one sample's tokens, by the logits of its answer. KeyError where a tensor is
    missing.
    """
    logits = answer[LOGITS] if LOGITS in answer else _only(answer)
    return token_log_likelihood(logits, row[IDS].reshape(-1), row[MASK].reshape(-1) if MASK in row else None)


def _only(answer: Mapping[str, Array]) -> Array:
    if len(answer) != 1:
        raise KeyError(LOGITS)
    return next(iter(answer.values()))

"""What is told of the log probabilities of tokens."""

from collections.abc import Sequence
from typing import Any

from argosy_runtime.language import LogprobEntry, token_bytes

from .processors import TokenLogprobs


def position(tokenizer: Any, token: int, logprobs: TokenLogprobs) -> dict[int, LogprobEntry]:
    """Return what is told of a token that was chosen: it first, then the likeliest ones."""
    entries = {token: _entry(tokenizer, token, logprobs.logprob, logprobs.rank)}
    for rank, (other, logprob) in enumerate(logprobs.likeliest, 1):
        entries.setdefault(other, _entry(tokenizer, other, logprob, rank))
    return entries


def positions(
    tokenizer: Any, tokens: Sequence[int], logprobs: Sequence[TokenLogprobs]
) -> list[dict[int, LogprobEntry]]:
    """Return the same for each of these tokens."""
    return [position(tokenizer, token, entry) for token, entry in zip(tokens, logprobs, strict=True)]


def _entry(tokenizer: Any, token: int, logprob: float, rank: int) -> LogprobEntry:
    if tokenizer is None:
        return LogprobEntry(logprob, rank)
    return LogprobEntry(logprob, rank, tokenizer.decode([token]), list(token_bytes(tokenizer, token)))

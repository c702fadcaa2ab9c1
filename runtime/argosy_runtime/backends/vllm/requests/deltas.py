"""vLLM's outputs as the deltas of the contract."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy_runtime.language import Delta, LogprobEntry
from argosy_runtime.language.deltas import Position

_REASONS: Final = {"repetition": "stop"}
"""Reasons of vLLM's own for the end of an answer, in the terms of the contract."""


def delta_of(output: Any) -> Delta:
    """Return the news in a `CompletionOutput`."""
    reason = output.finish_reason
    return Delta(
        output.index,
        output.text,
        list(output.token_ids),
        None if reason is None else _REASONS.get(reason, reason),
        output.stop_reason,
        output.cumulative_logprob,
        None if output.logprobs is None else [position_of(tokens) for tokens in output.logprobs],
    )


def position_of(tokens: Mapping[int, Any]) -> Position:
    """Return the tokens that vLLM looked at for a position, the chosen one first as there."""
    return {
        token: LogprobEntry(entry.logprob, entry.rank, entry.decoded_token, _bytes(entry.decoded_token))
        for token, entry in tokens.items()
    }


def prompt_positions(positions: Iterable[Mapping[int, Any] | None] | None) -> list[Position | None] | None:
    """Return the positions of a prompt; the first has no tokens before it, and none of its own."""
    if positions is None:
        return None
    return [None if tokens is None else position_of(tokens) for tokens in positions]


def merge(before: Delta, new: Delta) -> None:
    """Add to a delta what came after it."""
    before.text += new.text
    before.token_ids += new.token_ids
    before.finish_reason = new.finish_reason
    before.stop_reason = new.stop_reason
    before.cumulative_logprob = new.cumulative_logprob
    if new.logprobs is not None:
        before.logprobs = [*(before.logprobs or ()), *new.logprobs]


def _bytes(text: str | None) -> list[int] | None:
    return None if text is None else list(text.encode("utf-8", "replace"))

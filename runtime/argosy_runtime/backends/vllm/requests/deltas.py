"""vLLM's outputs as the deltas of the contract."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy_runtime.language import Delta, LogprobEntry
from argosy_runtime.language.deltas import Position
from argosy_runtime.language.text import token_bytes

_REASONS: Final = {"repetition": "stop"}
"""Reasons of vLLM's own for the end of an answer, in the terms of the contract."""
_UNFINISHED: Final = "\ufffd"


class TokenBytes:
    """The bytes of a tokenizer's tokens, None for a model without one."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._parts: dict[int, bytes] = {}

    def of(self, token: int, text: str | None) -> bytes | None:
        """Return the bytes of a token, of which vLLM says the text: "" or none for a part of a character."""
        if text and _UNFINISHED not in text:
            return text.encode("utf-8", "replace")
        if self._tokenizer is None:
            return None
        data = self._parts.get(token)
        if data is None:
            data = self._parts[token] = token_bytes(self, token)
        return data

    def decode(self, token_ids: list[int]) -> str:
        """Return the text of tokens."""
        return str(self._tokenizer.decode(token_ids))

    def convert_ids_to_tokens(self, ids: int) -> str:
        """Return a token as the vocabulary has it. Not all of vLLM's tokenizers take a single one."""
        (piece,) = self._tokenizer.convert_ids_to_tokens([ids])
        return piece.decode("utf-8", "replace") if isinstance(piece, bytes) else str(piece)


def delta_of(output: Any, bytes_of: TokenBytes) -> Delta:
    """Return what is new in a `CompletionOutput`."""
    reason = output.finish_reason
    return Delta(
        output.index,
        output.text,
        list(output.token_ids),
        None if reason is None else _REASONS.get(reason, reason),
        output.stop_reason,
        output.cumulative_logprob,
        None if output.logprobs is None else [position_of(tokens, bytes_of) for tokens in output.logprobs],
    )


def position_of(tokens: Mapping[int, Any], bytes_of: TokenBytes) -> Position:
    """Return the tokens that vLLM looked at for a position, the chosen one first as there."""
    position: Position = {}
    for token, entry in tokens.items():
        data = bytes_of.of(token, entry.decoded_token)
        position[token] = LogprobEntry(
            entry.logprob, entry.rank, entry.decoded_token, None if data is None else list(data)
        )
    return position


def prompt_positions(
    positions: Iterable[Mapping[int, Any] | None] | None, bytes_of: TokenBytes
) -> list[Position | None] | None:
    """Return the positions of a prompt; the first has no tokens before it, and none of its own."""
    if positions is None:
        return None
    return [None if tokens is None else position_of(tokens, bytes_of) for tokens in positions]


def merge(before: Delta, new: Delta) -> None:
    """Add to a delta what came after it."""
    before.text += new.text
    before.token_ids += new.token_ids
    before.finish_reason = new.finish_reason
    before.stop_reason = new.stop_reason
    before.cumulative_logprob = new.cumulative_logprob
    if new.logprobs is not None:
        before.logprobs = [*(before.logprobs or ()), *new.logprobs]

"""The text and the bytes of single tokens, and what is told of their log probabilities."""

import re
from collections.abc import Sequence
from typing import Any, Final

from tokenizers.pre_tokenizers import ByteLevel

from argosy_runtime.language import LogprobEntry

from .processors import TokenLogprobs

_BYTE: Final = re.compile(r"<0x([0-9A-F]{2})>")
_UNFINISHED: Final = "\ufffd"


def _bytes_of_characters() -> dict[str, int]:
    """Return the byte that each character of a byte-level token stands for: printable ones for themselves, the others,
    in order, are the characters from U+0100 on.
    """
    alphabet = set(ByteLevel.alphabet())
    shifted = [byte for byte in range(256) if chr(byte) not in alphabet]
    plain = {chr(byte): byte for byte in range(256) if chr(byte) in alphabet}
    return plain | {chr(256 + number): byte for number, byte in enumerate(shifted)}


_BYTES_OF_CHARACTERS: Final = _bytes_of_characters()


def token_bytes(tokenizer: Any, token: int) -> bytes:
    """Return the bytes of a token, which may be a part of a character only."""
    text: str = tokenizer.decode([token])
    if _UNFINISHED not in text:
        return text.encode()
    piece = tokenizer.convert_ids_to_tokens(token)
    if match := _BYTE.fullmatch(piece):
        return bytes.fromhex(match[1])
    if all(character in _BYTES_OF_CHARACTERS for character in piece):
        return bytes(_BYTES_OF_CHARACTERS[character] for character in piece)
    return text.encode()


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

"""The bytes of single tokens, of which several may be one character."""

import re
from itertools import count
from typing import Final, Protocol

from argosy_runtime.language.deltas import LogprobEntry

_BYTE: Final = re.compile(r"<0x([0-9A-F]{2})>")
_UNFINISHED: Final = "\ufffd"
_PRINTABLE: Final = frozenset([*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)])
"""Bytes that stand for themselves in the tokens of byte-level vocabularies (GPT-2's)."""


class TokenDecoder(Protocol):
    """What is needed of a tokenizer of the package transformers."""

    def decode(self, token_ids: list[int]) -> str:
        """Return the text of tokens."""

    def convert_ids_to_tokens(self, ids: int) -> str:
        """Return a token as the vocabulary has it."""


def _bytes_of_characters() -> dict[str, int]:
    """Return the byte that each character of a byte-level token stands for: printable ones for themselves, the others,
    in order, are the characters from U+0100 on.
    """
    others = count(256)
    return {chr(byte if byte in _PRINTABLE else next(others)): byte for byte in range(256)}


_BYTES_OF_CHARACTERS: Final = _bytes_of_characters()


def token_bytes(tokenizer: TokenDecoder, token: int) -> bytes:
    """Return the bytes of a token, which may be a part of a character only."""
    text = tokenizer.decode([token])
    if _UNFINISHED not in text:
        return text.encode()
    piece = tokenizer.convert_ids_to_tokens(token)
    if match := _BYTE.fullmatch(piece):
        return bytes.fromhex(match[1])
    if all(character in _BYTES_OF_CHARACTERS for character in piece):
        return bytes(_BYTES_OF_CHARACTERS[character] for character in piece)
    return text.encode()


def logprob_entry(tokenizer: TokenDecoder | None, token: int, logprob: float, rank: int | None) -> LogprobEntry:
    """Return the entry of a token, with its text and bytes where there is a tokenizer."""
    if tokenizer is None:
        return LogprobEntry(logprob, rank)
    return LogprobEntry(logprob, rank, tokenizer.decode([token]), list(token_bytes(tokenizer, token)))

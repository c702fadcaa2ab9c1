"""Small tokenizers without training, for tests of texts and tokens."""

from collections.abc import Iterable

import tokenizers

BYTES = tuple(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))
"""The 256 bytes as byte-level tokenizers write them."""


def byte_level(pieces: Iterable[str] = BYTES) -> tokenizers.Tokenizer:
    """Return a tokenizer of single bytes; its tokens are numbered in the order of `pieces`."""
    tokens = {piece: number for number, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(tokens, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return made


def words(vocabulary: Iterable[str], unknown: str) -> tokenizers.Tokenizer:
    """Return a tokenizer of words with white space between them, numbered in their order."""
    tokens = {word: number for number, word in enumerate(vocabulary)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(tokens, unk_token=unknown))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return made

"""The text of a stream of tokens: its pieces are the whole, and a long one costs no more for each token."""

from collections.abc import Sequence

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tests.tiny_tokenizers import BYTES, byte_level

from argosy_runtime.language import StreamedText

WORDS = ["\u2581a", "\u2581be", "c", "<0xF0>", "<0x9F>", "<0x99>", "<0x82>", "<0xC3>", "<0xA9>", "</s>"]


def byte_fallback() -> tokenizers.Tokenizer:
    """Return a tokenizer of words that begin with a space, which the first loses; of bytes; and of a special token."""
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: n for n, word in enumerate(WORDS)}, "c"))
    made.add_special_tokens(["</s>"])
    decoders = tokenizers.decoders
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(steps)
    return made


class CountingDecoder:
    """Decodes, and counts the tokens that it was given."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.tokens = 0

    def __call__(self, tokens: Sequence[int]) -> str:
        self.tokens += len(tokens)
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text


def pieces(decode: CountingDecoder, tokens: Sequence[int], cuts: Sequence[int]) -> list[str]:
    """Return the pieces of a stream that is read after so many tokens."""
    text = StreamedText(decode)
    return [*(text.next(tokens[:cut]) for cut in cuts), text.last(tokens)]


BYTE_LEVEL, BYTE_FALLBACK = byte_level(), byte_fallback()


@pytest.mark.parametrize("text", ["naïve café 🙂 中文", "👩‍👩‍👧‍👦 e\u0301 \ufffd!", ""])
def test_characters_of_several_bytes_are_not_torn(text):
    tokens = BYTE_LEVEL.encode(text).ids
    seen = pieces(CountingDecoder(BYTE_LEVEL), tokens, range(1, len(tokens)))
    assert "".join(seen) == text
    if "\ufffd" not in text:
        assert not any("\ufffd" in piece for piece in seen)
        assert sum(bool(piece) for piece in seen) == len(text), "each character at once"


@given(st.lists(st.integers(0, len(BYTES) - 1)), st.data())
def test_the_pieces_of_any_bytes_are_complete(tokens, data):
    check(BYTE_LEVEL, tokens, data)


@given(st.lists(st.sampled_from([[0], [1], [2], [3, 4, 5, 6], [7, 8], [9]])), st.data())
def test_pieces_of_words_bytes_and_special_tokens_join_to_the_text(parts, data):
    check(BYTE_FALLBACK, [token for part in parts for token in part], data)


def check(tokenizer: tokenizers.Tokenizer, tokens: list[int], data: st.DataObject) -> None:
    """Check that the joined pieces are the text of all tokens, wherever the stream is cut."""
    cuts = data.draw(st.lists(st.integers(0, len(tokens)), unique=True).map(sorted))
    decode = CountingDecoder(tokenizer)
    assert "".join(pieces(decode, tokens, cuts)) == decode(tokens)


@pytest.mark.parametrize("text", ["plain words ", "🙂", "\ufffd"])
def test_the_work_for_a_token_does_not_grow_with_the_text(text):
    work = []
    for repeats in (100, 1_000):
        tokens = BYTE_LEVEL.encode(text * repeats).ids
        decode = CountingDecoder(BYTE_LEVEL)
        pieces(decode, tokens, range(1, len(tokens)))
        work.append(decode.tokens / len(tokens))
    assert work[1] < 1.5 * work[0]
    assert work[1] < 12

"""Offsets of tokens in texts that come in pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.protocol.openai.responses.offsets import TextOffsets

_texts = st.text(st.characters(codec="utf-8", exclude_characters="\ufffd"), max_size=12)


def _split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[begin:end] for begin, end in pairwise(edges) if end > begin]


def _characters_before(text: str, offset: int) -> int:
    """Return how many characters end at or before a byte."""
    return len(text.encode()[:offset].decode(errors="ignore"))


@given(_texts, st.lists(st.integers(0, 100)), st.lists(st.integers(0, 100)))
def test_every_token_is_where_its_character_begins(text: str, tokens: list[int], pieces: list[int]) -> None:
    offsets = TextOffsets()
    expected, actual, at, shown = [], [], 0, 0
    parts = _split(text.encode(), tokens)
    ends = {cut % (len(parts) + 1) for cut in pieces} | {len(parts)}
    waiting: list[bytes] = []
    for number, token in enumerate(parts, 1):
        waiting.append(token)
        expected.append(_characters_before(text, at))
        at += len(token)
        if number in ends:
            # An engine sends the characters that are shown_next, and the tokens so far.
            shown_next = _characters_before(text, at)
            offsets.add(text[shown:shown_next], complete=number == len(parts))
            shown = shown_next
            actual += [offsets.offset(part) for part in waiting]
            waiting = []
    assert actual == expected


def test_a_hidden_token_has_the_offset_of_what_follows() -> None:
    offsets = TextOffsets()
    offsets.add("ab", complete=True)
    assert [offsets.offset(token) for token in (b"<s>", b"a", b"<tool>", b"b", b"</s>")] == [0, 0, 1, 1, 2]


def test_a_hidden_token_at_the_end_of_a_piece_is_no_text_that_lags_behind() -> None:
    offsets = TextOffsets()
    offsets.add("a", complete=False)
    assert [offsets.offset(token) for token in (b"a", b"<tool>")] == [0, 1]
    offsets.add("bc", complete=True)
    assert [offsets.offset(token) for token in (b"b", b"c")] == [1, 2]


def test_bytes_without_a_character_do_not_move_what_comes_after_a_replacement() -> None:
    offsets = TextOffsets()
    offsets.add("a\ufffdb", complete=True)
    assert [offsets.offset(token) for token in (b"a", b"\xe2\x82", b"b")] == [0, 1, 2]


def test_the_space_that_a_tokenizer_drops_at_the_begin() -> None:
    offsets = TextOffsets()
    offsets.add("one two", complete=True)
    assert [offsets.offset(token) for token in (b" one", b" two")] == [0, 3]


def test_no_offset_is_behind_the_text_once_it_is_complete() -> None:
    offsets = TextOffsets()
    offsets.add("a", complete=False)
    assert offsets.offset(b"a") == 0
    assert offsets.offset(b"\xe2") == 1
    offsets.add("", complete=True)
    assert [offsets.offset(token) for token in (b"\x82", b"</s>")] == [1, 1]

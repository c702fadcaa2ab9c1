"""Texts keep to their limit, and show where they were cut."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_common.wording import shortened


@given(st.text(), st.integers(1, 50))
def test_a_text_is_itself_or_a_prefix_with_an_ellipsis(text: str, limit: int) -> None:
    result = shortened(text, limit)
    assert len(result) == min(len(text), limit)
    assert result == text or (result.endswith("…") and text.startswith(result[:-1]))

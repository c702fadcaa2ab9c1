"""The wording of messages: long texts are shortened, and misspelt names get the nearest valid one. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches

_LISTED = 40
"""Names that a message lists where none is near: a pool may have ten thousand."""


def shortened(text: str, limit: int) -> str:
    """Return the text with at most `limit` characters, the last of them an ellipsis if it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'name'?`, ` (known: a, b)` where no name is near, of many the first ones, or an empty text
    without names.

    Case, underscores and hyphens do not count.
    """
    names = list(names)
    folded = {_fold(name): name for name in names}
    matches = get_close_matches(_fold(word), folded, 1, 0.6)
    if matches:
        return f"; did you mean {folded[matches[0]]!r}?"
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f" (known: {', '.join(names[:_LISTED])}{more})" if names else ""


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()

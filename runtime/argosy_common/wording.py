"""The wording of messages: long texts are shortened, and misspelt names get the nearest valid one. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches


def shortened(text: str, limit: int) -> str:
    """Return the text with at most `limit` characters, the last of them an ellipsis if it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'name'?`, ` (known: a, b)` where no name is near, or an empty text without names.

    Case, underscores and hyphens do not count.
    """
    names = list(names)
    folded = {_fold(name): name for name in names}
    matches = get_close_matches(_fold(word), folded, 1, 0.6)
    if matches:
        return f"; did you mean {folded[matches[0]]!r}?"
    return f" (known: {', '.join(names)})" if names else ""


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()

"""The nearest of the known names to one that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'name'?`, or ` (known: a, b)` where nothing is near, or nothing where nothing is known.

    Case, underscores and hyphens do not count.
    """
    names = list(known)
    folded = {_fold(name): name for name in names}
    close = get_close_matches(_fold(word), folded, 1, 0.6)
    if close:
        return f"; did you mean {folded[close[0]]!r}?"
    return f" (known: {', '.join(names)})" if names else ""


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()

"""Evidence as text: how far each test is between its two limits."""

from argosy.rollout.verdict import Outcome

_LETTERS = {Outcome.SUCCESSFUL: "P", Outcome.FAILED: "F", Outcome.ERROR: "E", Outcome.INCONCLUSIVE: "?"}
LEGEND = "P passes, F fails, - and + tend to pass and to fail, ? is open, E is an error"


def bar(progress: float | None, half: int = 8) -> str:
    """Return a scale from -1, where a test passes, to 1, where it fails, with `o` where it is; empty without a test."""
    if progress is None:
        return ""
    marks = ["-"] * (2 * half + 1)
    marks[half] = "+"
    marks[half + round(half * max(-1.0, min(1.0, progress)))] = "o"
    return f"|{''.join(marks)}|"


def letter(outcome: Outcome | None, progress: float | None) -> str:
    """Return a measurement in one letter; a blank where nothing was measured."""
    if outcome is Outcome.INCONCLUSIVE and progress is not None and abs(progress) >= _TENDS:
        return "+" if progress > 0 else "-"
    return _LETTERS[outcome] if outcome is not None else " "


_TENDS = 0.05

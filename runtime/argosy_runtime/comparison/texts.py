"""Generated answers, compared by their texts or tokens: how they are divided into responses makes no difference."""

from dataclasses import dataclass, field
from itertools import takewhile

from argosy_runtime.language.deltas import Delta

from .differences import Difference, DifferenceKind, OutputComparison

TEXT, TOKENS, FINISH_REASON = "text_output", "output_ids", "finish_reason"


@dataclass(slots=True)
class _Choice:
    """What one choice has so far."""

    texts: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    finish_reason: str = ""


@dataclass(slots=True)
class GeneratedAnswer:
    """The choices of one request, put together from its responses."""

    choices: dict[int, _Choice] = field(default_factory=dict)

    def add(self, delta: Delta) -> None:
        """Append what is new of a choice."""
        choice = self.choices.setdefault(delta.index, _Choice())
        if delta.text:
            choice.texts.append(delta.text)
        choice.tokens += delta.token_ids
        choice.finish_reason = delta.finish_reason or choice.finish_reason


def compare_generated(stable: GeneratedAnswer, candidate: GeneratedAnswer) -> list[OutputComparison]:
    """Compare two answers choice by choice: their tokens if both have them, else their texts, and why they ended."""
    joined: dict[str, OutputComparison] = {}
    for index in sorted(stable.choices.keys() | candidate.choices.keys()):
        for comparison in _compare_choices(
            stable.choices.get(index, _Choice()), candidate.choices.get(index, _Choice())
        ):
            before = joined.get(comparison.output)
            joined[comparison.output] = comparison if before is None else before.joined(comparison)
    return list(joined.values())


def _compare_choices(stable: _Choice, candidate: _Choice) -> list[OutputComparison]:
    comparisons = []
    if stable.tokens and candidate.tokens:
        comparisons.append(OutputComparison(TOKENS, _difference(stable.tokens, candidate.tokens, "tokens")))
    mine, theirs = "".join(stable.texts), "".join(candidate.texts)
    if mine or theirs or not comparisons:
        comparisons.append(OutputComparison(TEXT, _difference(mine, theirs, "characters")))
    if stable.finish_reason != candidate.finish_reason:
        detail = f"it ended by {candidate.finish_reason or 'nothing'!r} instead of {stable.finish_reason!r}"
        comparisons.append(OutputComparison(FINISH_REASON, Difference(DifferenceKind.ELEMENTS, 1.0, detail)))
    return comparisons


def _difference(stable: str | list[int], candidate: str | list[int], unit: str) -> Difference | None:
    if stable == candidate:
        return None
    pairs = zip(stable, candidate, strict=False)
    position = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    share = 1 - position / max(len(stable), len(candidate))
    return Difference(DifferenceKind.TEXT, share, f"equal in the first {position} {unit}", position)

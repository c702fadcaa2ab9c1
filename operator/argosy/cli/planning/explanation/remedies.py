"""The changes by which what fits nowhere would have a place: as lines for people, and as plain values."""

from collections.abc import Iterator, Sequence
from typing import Any

from argosy.api.values.identity import PoolKey
from argosy.planning.explanation.remedies.find import Remedies

_NAMED = 3
"""Groups that a line names."""


def remedy_lines(remedies: Remedies, keys: Sequence[tuple[PoolKey, str]], most: int) -> Iterator[str]:
    """Yield the changes for these groups, at most so many lines, those that hold for most of them first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key in dict.fromkeys(keys):
        for remedy in remedies.get(key, ()):
            groups.setdefault((remedy.text, remedy.option), []).append(key[1])
    several = len(set(keys)) > 1
    for (text, option), names in sorted(groups.items(), key=lambda entry: -len(entry[1]))[:most]:
        which = _one_of(names) if several else "it"
        tried = f" (try {option})" if option else ""
        yield f"  {which} would fit with: {text}{tried}"


def _one_of(names: Sequence[str]) -> str:
    """Return `a, b or c`; of more names the first, and how many more there are."""
    every = [*names[:_NAMED], f"{len(names) - _NAMED} more"] if len(names) > _NAMED else names
    return " or ".join([*filter(None, [", ".join(every[:-1])]), every[-1]])


def remedies_document(remedies: Remedies, pool: PoolKey, group: str) -> list[dict[str, Any]]:
    """Return the changes for a group as plain values, the smallest first."""
    return [
        {"kind": str(one.kind), "change": one.text, **({"option": one.option} if one.option else {})}
        for one in remedies.get((pool, group), ())
    ]

"""Which tensor is meant by a configured name: by position, by path, by argument, by key or by order. No torch here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from argosy_runtime.errors import invalid

_INDEXED = re.compile(r"^.+__(\d+)$")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tensor of a nested structure: every name it goes by besides its position."""

    names: frozenset[str]


def positions(model: str, side: str, configured: Sequence[str], leaves: Sequence[Leaf]) -> dict[str, int]:
    """Return the position of each configured name among `leaves`. Raises ServingError where there is none."""
    in_order = {name: place for place, name in enumerate(configured)}
    found = indexed(configured) or _by_name(configured, leaves) or in_order
    _check(model, side, found, len(leaves))
    return found


def indexed(configured: Sequence[str]) -> dict[str, int] | None:
    """Return the positions where every name is `<name>__<index>`, else None."""
    found = {name: _index(name) for name in configured if _INDEXED.match(name)}
    return found if len(found) == len(configured) else None


def _index(name: str) -> int:
    return int(name.rpartition("__")[2])


def _by_name(configured: Sequence[str], leaves: Sequence[Leaf]) -> dict[str, int] | None:
    known = {name: place for place, leaf in enumerate(leaves) for name in leaf.names}
    return {name: known[name] for name in configured} if set(configured) <= set(known) else None


def _check(model: str, side: str, found: dict[str, int], count: int) -> None:
    taken: dict[int, str] = {}
    for name, place in found.items():
        if place >= count:
            raise invalid(
                f"model '{model}': {side} '{name}' is number {place}, but the model has {count} {side}s, counted from 0"
            )
        if place in taken:
            raise invalid(f"model '{model}': {side}s '{taken[place]}' and '{name}' are both number {place}")
        taken[place] = name

"""Positions of configured tensor names: by index, by path, by argument, by key or by order. No torch here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from argosy_runtime.errors import invalid

_INDEXED = re.compile(r"^.+__(\d+)$")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tensor of a nested structure, with all of its names besides its position."""

    names: frozenset[str]


def positions(model: str, side: str, configured: Sequence[str], leaves: Sequence[Leaf]) -> dict[str, int]:
    """Return the position of each configured name among `leaves`. Raises ServingError where there is none."""
    in_order = {name: position for position, name in enumerate(configured)}
    result = indexed(configured) or _by_name(configured, leaves) or in_order
    _check(model, side, result, len(leaves))
    return result


def indexed(configured: Sequence[str]) -> dict[str, int] | None:
    """Return the positions where every name is `<name>__<index>`, else None."""
    result = {name: _index(name) for name in configured if _INDEXED.match(name)}
    return result if len(result) == len(configured) else None


def _index(name: str) -> int:
    return int(name.rpartition("__")[2])


def _by_name(configured: Sequence[str], leaves: Sequence[Leaf]) -> dict[str, int] | None:
    by_name = {name: position for position, leaf in enumerate(leaves) for name in leaf.names}
    return {name: by_name[name] for name in configured} if set(configured) <= set(by_name) else None


def _check(model: str, side: str, positions: dict[str, int], count: int) -> None:
    taken: dict[int, str] = {}
    for name, position in positions.items():
        if position >= count:
            raise invalid(
                f"model '{model}': {side} '{name}' is number {position}, but the model has {count} {side}s, "
                "counted from 0"
            )
        if position in taken:
            raise invalid(f"model '{model}': {side}s '{taken[position]}' and '{name}' are both number {position}")
        taken[position] = name

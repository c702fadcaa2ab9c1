"""What a plan changes of what runs: as lines for people, and as plain values."""

from collections.abc import Iterator, Sequence
from typing import Any

from argosy.planning.amounts import quantity
from argosy.planning.explanation.difference import Change, Difference, Location

_LISTED = 20
"""How many changes of one kind a table lists."""


def difference_lines(difference: Difference) -> list[str]:
    """Return the changes, a line each, with the GPUs in use before and after."""
    gpus = difference.gpus_after - difference.gpus_before
    used = f"{quantity(difference.gpus_before, 'GPU')} needed before, {difference.gpus_after} after ({gpus:+d})"
    if difference.gpus_retained:
        used += f", and servers keep {difference.gpus_retained} more until something else needs one of them"
    if difference.is_empty:
        return [f"Nothing changes: {quantity(difference.gpus_after, 'GPU')} needed."]
    return [
        f"What changes: {used}.",
        *_listed(difference.lost, "loses its place"),
        *_listed(difference.moved, "moves"),
        *_listed(difference.placed, "is placed"),
        *_listed(difference.removed, "ends"),
    ]


def difference_document(difference: Difference) -> dict[str, Any]:
    """Return the changes as plain values."""
    kinds = {
        "moved": difference.moved,
        "placed": difference.placed,
        "removed": difference.removed,
        "lost": difference.lost,
    }
    return {
        "gpusBefore": difference.gpus_before,
        "gpusAfter": difference.gpus_after,
        "gpusRetained": difference.gpus_retained,
        **{kind: [_document(change) for change in changes] for kind, changes in kinds.items()},
    }


def _listed(changes: Sequence[Change], verb: str) -> Iterator[str]:
    for change in changes[:_LISTED]:
        before, after = change.before, change.after
        where = [f"from {_named(before)}"] if before and after else [f"on {_named(before or after)}"]
        yield f"  {change.model} {verb} {' '.join([*where, *([f'to {_named(after)}'] if before and after else [])])}"
    if len(changes) > _LISTED:
        yield f"  and {len(changes) - _LISTED} more: -o json lists all"


def _named(location: Location | None) -> str:
    if location is None:
        return ""
    return f"{location.devices} of node {location.node} (server {location.server})"


def _document(change: Change) -> dict[str, Any]:
    sides = {"from": change.before, "to": change.after}
    return {
        "pool": str(change.pool),
        "model": change.model,
        **{
            side: {"server": location.server, "node": location.node, "gpus": list(location.gpus)}
            for side, location in sides.items()
            if location is not None
        },
    }

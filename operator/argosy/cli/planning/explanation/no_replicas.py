"""What a plan has no replica of, since none is asked for: as lines for people, and as plain values."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from argosy.planning.amounts import listed
from argosy.planning.explanation.no_replicas import NoReplicas

_NAMED = 5
"""Groups that a line names."""


def no_replica_lines(groups: Sequence[NoReplicas], models: Collection[str] = ()) -> Iterator[str]:
    """Yield a line for each reason with the groups that it holds for: all, or those that these models or ensembles
    name.
    """
    names: dict[str, list[str]] = {}
    for one in groups:
        if not models or one.group in models or not {*one.models}.isdisjoint(models):
            names.setdefault(one.reason, []).append(one.group)
    for reason, of_reason in names.items():
        yield f"{listed(of_reason, _NAMED, ', ')} {'has' if len(of_reason) == 1 else 'have'} no replica: {reason}"


def no_replicas_document(groups: Sequence[NoReplicas]) -> list[dict[str, Any]]:
    """Return the groups as plain values."""
    return [
        {"pool": str(one.pool), "group": one.group, "models": list(one.models), "reason": one.reason} for one in groups
    ]

"""The ControllerRevisions of a resource: the spec that is acted upon, and the latest before it. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ControllerRevision:
    """A spec that a resource had. Equal specs have one name; of two, the one with the higher number came later.

    `notes`: what came of it in a rollout, as annotations.
    """

    name: str
    number: int
    notes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """`current` is to stand with its number, those of the names in `outdated` no longer; any other stays as it is."""

    current: ControllerRevision
    outdated: frozenset[str]


def latest_of(names: Sequence[str], limit: int, good: Collection[str] = frozenset()) -> list[str]:
    """Return the names to retain, at most `limit`, of those that are given with the latest first. Those that are `good`
    come first: they can be gone back to.
    """
    return sorted(names, key=lambda name: name not in good)[:limit]


def revised(
    existing: Collection[ControllerRevision],
    current: str,
    limit: int,
    in_use: Collection[str] = frozenset(),
    good: Collection[str] = frozenset(),
) -> History:
    """Return the history once the spec of the name `current` is acted upon; `limit` is the most of earlier ones, in
    addition to those `in_use`. Of these the `good` ones are given up last.

    A spec that comes again is not written again: its number rises, as that of a Deployment's ReplicaSet does.
    """
    others = sorted((revision for revision in existing if revision.name != current), key=_order, reverse=True)
    latest = others[0].number if others else 0
    number_before = next((revision.number for revision in existing if revision.name == current), 0)
    number = number_before if number_before > latest else latest + 1
    names = [revision.name for revision in others]
    outdated = set(names) - set(latest_of(names, limit, set(good) - set(in_use))) - set(in_use)
    return History(ControllerRevision(current, number), frozenset(outdated))


def _order(revision: ControllerRevision) -> tuple[int, str]:
    return revision.number, revision.name

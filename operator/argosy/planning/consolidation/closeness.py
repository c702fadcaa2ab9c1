"""How close together the replicas of a group are, as the objective of packing counts it."""

from collections import Counter
from collections.abc import Iterable, Sequence

from argosy.planning.consolidation.fleet import RunningFleet
from argosy.planning.consolidation.moves import Move
from argosy.planning.facts import Group, Node
from argosy.planning.packing.layout.limits import preferred_labels

Closeness = tuple[int, int]
"""Replicas on a node that has one of their group already, and the same for each label by which they prefer to be
apart.
"""


def puts_closer(fleet: RunningFleet, moves: Iterable[Move]) -> bool:
    """Return whether the moves of a fleet, before they are done, put replicas closer together."""
    nodes, groups = fleet.nodes, fleet.groups
    before, after = (0, 0), (0, 0)
    by_group: dict[str, list[Move]] = {}
    for move in moves:
        by_group.setdefault(move.group, []).append(move)
    for name in (name for name in by_group if groups[name].replicas > 1):
        there = Counter(fleet.hosting(name))
        before = _added(before, closeness(groups[name], [nodes[at] for at in there.elements()]))
        there.subtract(fleet.hosts[move.source] for move in by_group[name])
        there.update(move.target_node for move in by_group[name])
        after = _added(after, closeness(groups[name], [nodes[at] for at in there.elements()]))
    return after > before


def closeness(group: Group, nodes: Sequence[Node]) -> Closeness:
    """Return how close together replicas of a group on these nodes are."""
    domains = preferred_labels(group)
    in_domains = sum(len(nodes) - len({node.domain(key) for node in nodes}) for key in domains)
    return len(nodes) - len({node.name for node in nodes}), in_domains


def _added(one: Closeness, other: Closeness) -> Closeness:
    return one[0] + other[0], one[1] + other[1]

"""Filling: few replicas get their places in a part of the pool, where that takes no further GPU than in all of it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from argosy.planning.packing.filling.searched import fill
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.nearby.part import Part, part_of
from argosy.planning.packing.nearby.spare import SpareNode

_FEW_REPLICAS = 32
"""Replicas that are placed in a part of a pool: more of them are packed more densely in all of it."""
_LEAST = 2
"""How many times as many nodes as a part has the pool has at least."""


def part_for(
    start: Layout, todo: Sequence[Replica], spare: Callable[[], Sequence[SpareNode]], nodes: int
) -> Part | None:
    """Return the part of a pool with so many nodes in which replicas are placed next to what is in `start`; None where
    it is to be the whole pool.
    """
    limited = start.topology.facts.max_servers is not None or start.topology.cpu_only
    if limited or len(todo) > _FEW_REPLICAS or any(replica.group.in_rollout for replica in todo):
        return None
    hosting = {replica.group.name: start.nodes_with(replica.group.name) for replica in todo}
    part = part_of(todo, spare(), hosting)
    return part if _LEAST * len(part.nodes) <= nodes else None


def filled_part(start: Layout, todo: Sequence[Replica], part: Part) -> Layout | None:
    """Return the layout with all of the replicas in addition; None where one of them has no place in the part, or more
    GPUs would be opened than may be necessary.
    """
    before = _restricted(start, part.nodes, todo)
    after, missing = fill(before, todo)
    if missing or after.gpus_used > before.gpus_used + part.fewest:
        return None
    return _merged(start, before, after)


def _restricted(layout: Layout, nodes: Collection[str], todo: Sequence[Replica]) -> Layout:
    """Return the part of these nodes, for replicas whose domains count over the whole pool."""
    groups = {replica.group.name: replica.group for replica in todo}
    limits = {name: limit for name, limit in layout.topology.limits.items() if name in groups}
    topology = layout.topology.part(nodes, [groups[name] for name in sorted(groups)])
    return layout.part(replace(topology, limits=limits))


def _merged(layout: Layout, before: Layout, after: Layout) -> Layout:
    """Return the layout in which a part is as it is `after`. New servers get names that none of the layout has."""
    servers = {**layout.servers, **{name: after.servers[name] for name in before.servers}}
    merged = Layout(layout.topology, servers, {**layout.unallocated, **after.unallocated})
    for name in sorted(after.servers.keys() - before.servers.keys()):
        server = replace(after.servers[name], name=next(merged.free_names()))
        merged = replace(merged, servers={**merged.servers, server.name: server})
    return merged

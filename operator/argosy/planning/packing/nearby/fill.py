"""Filling: few replicas get their places in a part of the pool, where that takes no further GPU than in all of it."""

from collections.abc import Callable, Sequence

from argosy.planning.packing.filling.searched import fill
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.nearby.candidates import Candidates, candidates_for
from argosy.planning.packing.nearby.part import part_of, with_part
from argosy.planning.packing.nearby.spare import SpareNode

_FEW_REPLICAS = 32
"""Replicas that are placed in a part of a pool: more of them are packed more densely in all of it."""
_LEAST = 2
"""How many times as many nodes as a part has the pool has at least."""


def part_for(
    start: Layout, todo: Sequence[Replica], spare: Callable[[], Sequence[SpareNode]], nodes: int
) -> Candidates | None:
    """Return the part of a pool with so many nodes in which replicas are placed next to what is in `start`; None where
    it is to be the whole pool.
    """
    limited = start.topology.facts.max_servers is not None or start.topology.cpu_only
    if limited or len(todo) > _FEW_REPLICAS or any(replica.group.in_rollout for replica in todo):
        return None
    hosting = {replica.group.name: start.nodes_with(replica.group.name) for replica in todo}
    candidates = candidates_for(todo, spare(), hosting)
    return candidates if _LEAST * len(candidates.nodes) <= nodes else None


def filled_part(start: Layout, todo: Sequence[Replica], candidates: Candidates) -> Layout | None:
    """Return the layout with all of the replicas in addition; None where one of them has no place in the part, or more
    GPUs would be opened than may be necessary.
    """
    before = part_of(start, candidates.nodes, todo)
    after, missing = fill(before, todo)
    if missing or after.gpus_used > before.gpus_used + candidates.fewest:
        return None
    return with_part(start, before, after)

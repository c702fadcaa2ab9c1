"""Replicas together, on few GPUs: the search first, whose servers follow from what shares GPUs."""

from collections.abc import Sequence

from argosy.planning.packing.filling.joined import joined
from argosy.planning.packing.filling.missing import Filled, cost
from argosy.planning.packing.filling.one_by_one import fill_in_order, fill_one_by_one, ranked
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.search.solver import solve


def fill(start: Layout, todo: Sequence[Replica]) -> Filled:
    """Return the layout with these replicas in addition, and those that have no place in it.

    Servers of a node are joined where there would be too many. Where CPUs stand in for GPUs, or joining is not enough,
    the replicas are placed one by one; where the servers are as many as there may be, and something is missing, what
    leaves out less is taken.
    """
    if start.topology.cpu_only:
        return fill_one_by_one(start, todo)
    layout, missing = _searched(start, todo)
    most = layout.topology.facts.max_servers
    if most is None or len(layout.servers) < most:
        return layout, missing
    fewer = joined(layout, most)
    if fewer is None:
        return fill_one_by_one(start, todo)
    return min((fewer, missing), fill_one_by_one(start, todo), key=cost) if missing else (fewer, missing)


def _searched(start: Layout, todo: Sequence[Replica]) -> Filled:
    """Return the layout in which each replica of a rollout is where there is memory for both revisions, or else for the
    larger one, or else for the stable one.
    """
    layout, missing = _placed(start, todo)
    rolling = [replica for replica in missing if replica.group.in_rollout]
    if not rolling:
        return layout, missing
    others = [replica for replica in missing if not replica.group.in_rollout]
    layout, larger = _placed(layout, [replica.without_surge for replica in rolling])
    layout, stable = _placed(layout, [replica.without_candidate for replica in larger])
    return layout, tuple(ranked(start.topology, [*others, *stable]))


def _placed(start: Layout, todo: Sequence[Replica]) -> Filled:
    layout, missing = solve(start, [replica for replica in todo if not replica.group.on_cpu])
    layout, of_cpus = fill_in_order(layout, [replica for replica in todo if replica.group.on_cpu])
    return layout, tuple(ranked(start.topology, [*missing, *of_cpus]))

"""Packing: facts about one pool become a plan with few GPUs.

Running replicas stay where they are. The others are placed on few GPUs (`filling/`), and if some do not fit,
`eviction/settling.py` frees capacity. The result depends only on the facts, not on their order. `pack` serves the real
run and what-if.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from argosy.planning.facts import PoolFacts
from argosy.planning.packing.bound.candidates import with_candidates
from argosy.planning.packing.bound.replicas import BoundReplica, bind, bound_replicas
from argosy.planning.packing.capacity import gpus_of
from argosy.planning.packing.eviction.by_rank import fill_by_rank, lack
from argosy.planning.packing.eviction.settling import Settled, settle, still_lost
from argosy.planning.packing.filling.missing import absent
from argosy.planning.packing.filling.searched import fill
from argosy.planning.packing.fit.fit_errors import FitErrors
from argosy.planning.packing.layout import Layout, Replica, Topology
from argosy.planning.packing.lower_bound import gpus_one_per_model, placed_groups
from argosy.planning.packing.nearby.fill import filled_part, part_for
from argosy.planning.packing.nearby.spare import seats_of, spare_nodes
from argosy.planning.packing.servers import server_plans, settled_names, with_idle_servers
from argosy.planning.plan import PoolPlan, Unplaced


def pack(facts: PoolFacts) -> PoolPlan:
    """Return the plan for one pool. A suspended pool serves nothing, and lacks nothing."""
    total = sum(len(gpus_of(node)) for node in facts.nodes if node.ready)
    if facts.suspended:
        return PoolPlan(facts.pool, (), (), total, 0, 0)
    settled = _settle_with_peaks(facts)
    layout, unschedulable = settled.layout, settled.unschedulable
    servers = with_idle_servers(layout, settled_names(layout, server_plans(layout)))
    return PoolPlan(
        pool=facts.pool,
        servers=servers,
        unplaced=_unplaced(layout, unschedulable),
        gpus_total=total,
        gpus_used=sum(len(server.gpus) for server in servers),
        gpus_one_per_model=gpus_one_per_model(placed_groups(facts.groups, servers)),
        lost=settled.lost,
    )


def _settle_with_peaks(facts: PoolFacts) -> Settled:
    """Return the settled layout with room next to models for what they had when they crashed, unless less is left out
    without it: such a peak may be that of one bad request, so it takes no place from anything.
    """
    cautious = facts.with_peaks
    settled = _settle(cautious)
    if cautious is facts or not settled.unschedulable:
        return settled
    return min(settled, _settle(facts), key=lack)


def _settle(facts: PoolFacts) -> Settled:
    """Return the layout, the replicas that do not fit into it, and the places that they lost. Nothing new gets a GPU
    that is to be left.
    """
    every, nodes = bound_replicas(facts), {node.name: node for node in facts.nodes}
    leaving = {replica.replica.key for replica in every if replica.leaves(nodes.get(replica.server.node))}
    bound = tuple(replica for replica in every if replica.replica.key not in leaving)
    start = bind(Layout.empty(Topology.of(facts)).without_leaving, bound)
    first = _nearby(start) or fill_by_rank(start, lambda layout, todo: _filled(layout, todo, bound))
    leaving_ones = list(_staying(first.layout, every, leaving))
    layout, unschedulable = _left_behind(first.layout, first.unschedulable, leaving_ones)
    return Settled(layout, unschedulable, still_lost(first, layout, unschedulable))


def _nearby(start: Layout) -> Settled | None:
    """Return the layout in which a part of the pool's nodes takes all that is missing; None where that does not do."""
    todo, topology = absent(start), start.topology
    if not todo:
        return Settled(start, ())
    nodes, headroom = topology.nodes, topology.facts.headroom
    part = part_for(start, todo, lambda: spare_nodes(nodes.values(), headroom, seats_of(start)), len(nodes))
    layout = filled_part(start, todo, part) if part is not None else None
    return Settled(layout, ()) if layout is not None else None


def _filled(start: Layout, todo: Sequence[Replica], bound: Sequence[BoundReplica]) -> Settled:
    """Return the layout with these replicas in addition, in which rollouts have memory for their candidates. Where less
    is left out without them, candidates get what is free once everything has its place.
    """
    settled = settle(*fill(start, todo), bound)
    if not settled.unschedulable or not any(replica.group.in_rollout for replica in todo):
        return settled
    stable = settle(*fill(start, [replica.without_candidate for replica in todo]), bound)
    return min(settled, replace(stable, layout=with_candidates(stable.layout, todo)), key=lack)


def _staying(layout: Layout, every: Sequence[BoundReplica], leaving: Set[tuple[str, int]]) -> Iterator[BoundReplica]:
    """Yield what stays where it is if it fits nowhere else, without what keeps it away from there."""
    for one in every:
        group, node = one.replica.group, layout.topology.nodes.get(one.server.node)
        apart = group.separated or group.name in layout.topology.limits
        if apart or (node is not None and not group.runs_on(node)):
            yield one.anywhere
        elif one.replica.key in leaving:
            yield one


def _left_behind(
    layout: Layout, unschedulable: Sequence[Replica], leaving: Sequence[BoundReplica]
) -> tuple[Layout, tuple[Replica, ...]]:
    """Return the layout in which what leaves its node or GPU, and fits nowhere else, stays where it is."""
    if not unschedulable or not leaving:
        return layout, tuple(unschedulable)
    homeless = {replica.key for replica in unschedulable}
    layout = bind(
        layout.with_leaving, [replica for replica in leaving if replica.replica.key in homeless]
    ).without_leaving
    missing = {replica.key for replica in absent(layout)}
    return layout, tuple(replica for replica in unschedulable if replica.key in missing)


def _unplaced(layout: Layout, unschedulable: Sequence[Replica]) -> tuple[Unplaced, ...]:
    if not unschedulable:
        return ()
    errors = FitErrors.of(layout)
    diagnoses = ((replica.group, errors.explain(replica)) for replica in unschedulable)
    return tuple(
        Unplaced(group.name, tuple(demand.model for demand in group.demands), why.reason, why.message)
        for group, why in diagnoses
    )

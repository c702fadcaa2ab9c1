"""Packing: facts about one pool become a plan with few GPUs.

Running replicas stay where they are. The others are placed on few GPUs (`filling/`), and if some do not fit,
`eviction/settling.py` frees capacity. The result depends only on the facts, not on their order. `pack` serves the real
run and what-if.
"""

from collections.abc import Iterator, Mapping, Sequence, Set

from argosy.planning.facts import Group, Node, PoolFacts
from argosy.planning.packing.bound.replicas import BoundReplica, bind, bound_replicas
from argosy.planning.packing.capacity import gpus_of
from argosy.planning.packing.eviction.by_rank import absent, fill_by_rank
from argosy.planning.packing.eviction.peaks import settle_with_peaks
from argosy.planning.packing.eviction.settling import Settled, settle, still_lost
from argosy.planning.packing.filling.searched import fill
from argosy.planning.packing.fit.fit_errors import FitErrors
from argosy.planning.packing.fit.unreserved import unreserved
from argosy.planning.packing.layout import Layout, PlacedReplica, Replica, Server, Topology
from argosy.planning.packing.lower_bound import gpus_one_per_model, placed_groups
from argosy.planning.packing.servers import settled_names, with_idle_servers
from argosy.planning.plan import Placement, PoolPlan, ServerPlan, Unplaced


def pack(facts: PoolFacts) -> PoolPlan:
    """Return the plan for one pool. A suspended pool serves nothing, and lacks nothing."""
    total = sum(len(gpus_of(node)) for node in facts.nodes if node.ready)
    if facts.suspended:
        return PoolPlan(facts.pool, (), (), total, 0, 0)
    settled = settle_with_peaks(facts, _settle)
    layout, unschedulable = settled.layout, settled.unschedulable
    servers = with_idle_servers(layout, settled_names(layout, _servers(layout)))
    return PoolPlan(
        pool=facts.pool,
        servers=servers,
        unplaced=_unplaced(layout, unschedulable),
        gpus_total=total,
        gpus_used=sum(len(server.gpus) for server in servers),
        gpus_one_per_model=gpus_one_per_model(placed_groups(facts.groups, servers)),
        lost=settled.lost,
    )


def _settle(facts: PoolFacts) -> Settled:
    """Return the layout, the replicas that do not fit into it, and the places that they lost. Nothing new gets a GPU
    that is to be left.
    """
    every, nodes = bound_replicas(facts), {node.name: node for node in facts.nodes}
    leaving = {replica.replica.key for replica in every if _leaves(replica, nodes.get(replica.server.node))}
    bound = tuple(replica for replica in every if replica.replica.key not in leaving)
    start = bind(Layout.empty(Topology.of(facts)).without_leaving, bound)
    first = fill_by_rank(start, lambda layout, todo: settle(*fill(layout, todo), bound))
    leaving_ones = list(_staying(first.layout, every, leaving))
    layout, unschedulable = _left_behind(first.layout, first.unschedulable, leaving_ones)
    return Settled(layout, unschedulable, still_lost(first, layout, unschedulable))


def _staying(layout: Layout, every: Sequence[BoundReplica], leaving: Set[tuple[str, int]]) -> Iterator[BoundReplica]:
    """Yield what stays where it is if it fits nowhere else, without what keeps it away from there."""
    for one in every:
        group, node = one.replica.group, layout.topology.nodes.get(one.server.node)
        apart = group.separated or group.name in layout.topology.limits
        if apart or (node is not None and not group.runs_on(node)):
            yield one.anywhere
        elif one.replica.key in leaving:
            yield one


def _leaves(replica: BoundReplica, node: Node | None) -> bool:
    """Return whether a replica goes elsewhere if it can: its node is lost, or is not one that it may run on, or its
    server has a GPU that is to be left.
    """
    if node is None:
        return False
    left = any(gpu.leaving and gpu.index in replica.server.gpus for gpu in node.gpus)
    return left or node.lost or not replica.replica.group.runs_on(node)


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


def _servers(layout: Layout) -> tuple[ServerPlan, ...]:
    requested = {group.name: group for group in layout.topology.facts.groups}
    return tuple(
        ServerPlan(
            name=server.name,
            node=server.node,
            gpus=server.gpus,
            placements=tuple(
                placement
                for placed_replica in sorted(server.placed, key=lambda placed_replica: placed_replica.replica.key)
                for placement in _placements(layout, server, placed_replica, requested)
            ),
        )
        for server in layout.servers.values()
    )


def _placements(
    layout: Layout, server: Server, placed: PlacedReplica, requested: Mapping[str, Group]
) -> list[Placement]:
    group, assignment = placed.replica.group, placed.assignment
    return [
        Placement(
            model=demand.model,
            version=demand.version,
            group=group.name,
            gpus=gpus,
            instances=demand.instances,
            memory=demand.footprint.memory,
            compute=demand.footprint.compute,
            exclusive=demand.footprint.exclusive,
            surge=demand.footprint.surge,
            unreserved=unreserved(layout, server, placed, desired),
            shares=demand.footprint.shares,
            misplaced=_misplaced(group, requested[group.name]),
        )
        for demand, desired, gpus in zip(group.demands, requested[group.name].demands, assignment, strict=True)
    ]


def _misplaced(placed: Group, requested: Group) -> bool:
    """Return whether a group was left where it is without what it requires of its node."""
    apart = (placed.spread, placed.not_on_server, placed.not_on_node)
    requires = [demand.requires for demand in placed.demands]
    return (apart, requires) != (
        (requested.spread, requested.not_on_server, requested.not_on_node),
        [demand.requires for demand in requested.demands],
    )


def _unplaced(layout: Layout, unschedulable: Sequence[Replica]) -> tuple[Unplaced, ...]:
    if not unschedulable:
        return ()
    errors = FitErrors.of(layout)
    diagnoses = ((replica.group, errors.explain(replica)) for replica in unschedulable)
    return tuple(
        Unplaced(group.name, tuple(demand.model for demand in group.demands), why.reason, why.message)
        for group, why in diagnoses
    )

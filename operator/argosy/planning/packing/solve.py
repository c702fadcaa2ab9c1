"""Packing: facts about one pool become a plan with few GPUs.

Running replicas stay where they are. `search` places the others on few GPUs; where servers do not follow from what
shares GPUs, each goes to its best candidate (`scoring.Cost`), hardest first. If some do not fit, `eviction/settling.py`
frees capacity. The result depends only on the facts, not on their order. `pack` serves the real run and what-if.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from argosy.planning.facts import Footprint, Group, Node, PoolFacts
from argosy.planning.packing.bound.replicas import BoundReplica, bind, bound_replicas
from argosy.planning.packing.capacity import FULL_COMPUTE, gpus_of
from argosy.planning.packing.equivalence import Hopeless
from argosy.planning.packing.eviction.by_rank import absent, fill_by_rank
from argosy.planning.packing.eviction.peaks import settle_with_peaks
from argosy.planning.packing.eviction.settling import Settled, settle, still_lost
from argosy.planning.packing.fit.fit_errors import FitErrors
from argosy.planning.packing.fit.unreserved import unreserved
from argosy.planning.packing.layout import Layout, PlacedReplica, Replica, Server, Topology
from argosy.planning.packing.lower_bound import gpus_one_per_model, placed_groups
from argosy.planning.packing.scoring import best
from argosy.planning.packing.search.solver import solve
from argosy.planning.packing.servers import settled_names, with_idle_servers
from argosy.planning.plan import Placement, PoolPlan, ServerPlan, Unplaced

_SortKey = Callable[[Replica], tuple[object, ...]]
_Size = Callable[[Footprint, int], int]


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
    fill = _searched if _derives_servers(start) else _filled
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


def _derives_servers(layout: Layout) -> bool:
    """Return whether servers follow from what shares GPUs: not where their number is limited, where CPUs stand in for
    GPUs, or where a candidate takes memory only if there is some.
    """
    limited = layout.topology.facts.max_servers is not None or layout.topology.cpu_only
    return not limited and not any(group.in_rollout for group in layout.topology.facts.groups)


def _searched(start: Layout, todo: Sequence[Replica]) -> tuple[Layout, tuple[Replica, ...]]:
    """Return the layout that the search finds for these replicas, and those that do not fit into it."""
    on_gpus = [replica for replica in todo if not _on_cpu(replica)]
    layout, missing = solve(start, on_gpus)
    by_rank = next(_dense_orders(start.topology))
    layout, unschedulable = _fill(layout, sorted(filter(_on_cpu, todo), key=by_rank))
    return layout, tuple(sorted((*missing, *unschedulable), key=by_rank))


def _on_cpu(replica: Replica) -> bool:
    return all(demand.footprint.on_cpu for demand in replica.group.demands)


def _filled(start: Layout, todo: Sequence[Replica]) -> tuple[Layout, tuple[Replica, ...]]:
    """Return the best layout of several orders, each filled greedily."""
    attempts = [_fill(start, sorted(todo, key=order)) for order in _dense_orders(start.topology)]
    if all(unschedulable for _, unschedulable in attempts):
        attempts += [_fill(start, sorted(todo, key=order)) for order in _fair_orders(start.topology)]
    return min(attempts, key=lambda attempt: _score(*attempt))


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


def _fill(layout: Layout, todo: Sequence[Replica]) -> tuple[Layout, tuple[Replica, ...]]:
    """Place each replica on its best candidate, in order. Return the layout and those that fit nowhere."""
    unschedulable = []
    hopeless = Hopeless()
    for replica in todo:
        stable = replica.without_candidate
        is_hopeless = stable in hopeless
        placed = None if is_hopeless else _placed(layout, replica)
        if placed is None:
            unschedulable.append(stable)
            if not is_hopeless:
                hopeless.add(layout, stable)
        else:
            layout = placed
    return layout, tuple(unschedulable)


def _placed(layout: Layout, replica: Replica) -> Layout | None:
    """Return the layout with a replica on its best candidate: where there is memory for both revisions of a rollout,
    or else for the larger one, or else for the stable one.
    """
    for footprints in dict.fromkeys((replica, replica.without_surge, replica.without_candidate)):
        candidate = best(layout, footprints)
        if candidate is not None:
            return candidate.applied(layout, footprints)
    return None


def _score(layout: Layout, unschedulable: Sequence[Replica]) -> tuple[int, int, int]:
    served = {
        placed_replica.replica.group.name for server in layout.servers.values() for placed_replica in server.placed
    }
    down = {replica.group.name for replica in unschedulable} - served
    return len(down), len(unschedulable), layout.gpus_used


def _dense_orders(topology: Topology) -> Iterator[_SortKey]:
    """Yield orders that waste little: exclusive GPUs first, then by the scarcer resource, or by both together."""
    capacity = _capacity(topology)

    def by(size: _Size) -> _SortKey:
        return lambda r: (*r.rank, -_exclusive_gpus(r.group), -_size(r.group, size, capacity), r.group.name, r.index)

    yield by(_dominant)
    yield by(_total)


def _fair_orders(topology: Topology) -> Iterator[_SortKey]:
    """Yield orders for a pool too small for all: one replica of everything before a second of anything."""
    capacity = _capacity(topology)

    def hardest(r: Replica) -> tuple[object, ...]:
        return (*r.rank, r.index, -_exclusive_gpus(r.group), -_size(r.group, _dominant, capacity), r.group.name)

    def easiest(r: Replica) -> tuple[object, ...]:
        return (*r.rank, r.index, _exclusive_gpus(r.group), _size(r.group, _dominant, capacity), r.group.name)

    yield hardest
    yield easiest


def _dominant(need: Footprint, capacity: int) -> int:
    """Return the thousandths of the resource of which the model takes the larger part."""
    return max(need.memory * FULL_COMPUTE // capacity, need.compute)


def _total(need: Footprint, capacity: int) -> int:
    """Return the thousandths of both resources together."""
    return need.memory * FULL_COMPUTE // capacity + need.compute


def _size(group: Group, size: _Size, capacity: int) -> int:
    return sum(size(demand.footprint, capacity) for demand in group.demands if not demand.footprint.exclusive)


def _exclusive_gpus(group: Group) -> int:
    return sum(demand.footprint.gpus for demand in group.demands)


def _capacity(topology: Topology) -> int:
    return max((size for gpus in topology.usable.values() for size in gpus.values()), default=0) or 1


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

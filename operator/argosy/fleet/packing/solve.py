"""Packing: facts about one pool become the plan with the fewest GPUs that one honest pass finds.

What runs stays where it is. The rest goes in, hardest first, each to its best place (`candidates.Cost`); if
something is left over, `repair` makes room. The answer depends on the facts alone, not on their order. A
better solver replaces `pack` and nothing else: it is the one solver, for the real run and for what-if.
"""

from collections.abc import Sequence

from argosy.fleet.facts import Group, PoolFacts
from argosy.fleet.packing.bound_replicas import Pin, pinned, pins_of
from argosy.fleet.packing.capacity import gpus_of
from argosy.fleet.packing.fit_errors import explain
from argosy.fleet.packing.layout import Layout, Replica, Terrain
from argosy.fleet.packing.lower_bound import gpus_one_per_model
from argosy.fleet.packing.min_servers import with_idle_servers
from argosy.fleet.packing.ordering import dense_orders, fair_orders
from argosy.fleet.packing.preemption import Effort, make_room
from argosy.fleet.packing.scoring import best
from argosy.fleet.packing.server_names import settled_names
from argosy.fleet.plan import Placement, PoolPlan, ServerPlan, Unplaced


def pack(facts: PoolFacts) -> PoolPlan:
    """The plan for one pool. A suspended pool serves nothing, and lacks nothing."""
    total = sum(len(gpus_of(node)) for node in facts.nodes if node.ready)
    if facts.suspended:
        return PoolPlan(facts.pool, (), (), total, 0, 0)
    layout, homeless = _settle(facts)
    servers = with_idle_servers(layout, settled_names(layout, _servers(layout)))
    return PoolPlan(
        pool=facts.pool,
        servers=servers,
        unplaced=tuple(_unplaced(layout, replica) for replica in homeless),
        gpus_total=total,
        gpus_used=sum(len(server.gpus) for server in servers),
        gpus_one_per_model=gpus_one_per_model(facts.groups),
    )


def _settle(facts: PoolFacts) -> tuple[Layout, tuple[Replica, ...]]:
    """The layout, and the replicas that found no place in it."""
    pins = pins_of(facts)
    start = pinned(Layout.empty(Terrain.of(facts)), pins)
    todo = _missing(start)
    attempts = [_fill(start, sorted(todo, key=order)) for order in dense_orders(start.terrain)]
    if all(homeless for _, homeless in attempts):
        attempts += [_fill(start, sorted(todo, key=order)) for order in fair_orders(start.terrain)]
    layout, homeless = min(attempts, key=lambda attempt: _score(*attempt))
    return _repaired(layout, homeless, pins)


def _missing(layout: Layout) -> list[Replica]:
    placed = {tenant.replica.key for server in layout.servers.values() for tenant in server.tenants}
    every = (Replica(group, n) for group in layout.terrain.facts.groups for n in range(group.replicas))
    return [replica for replica in every if replica.key not in placed]


def _fill(layout: Layout, todo: Sequence[Replica]) -> tuple[Layout, tuple[Replica, ...]]:
    """Each replica to its best place, in order; those that fit nowhere are returned."""
    homeless = []
    for replica in todo:
        place = best(layout, replica)
        if place is None:
            homeless.append(replica)
        else:
            layout = place.applied(layout, replica)
    return layout, tuple(homeless)


def _score(layout: Layout, homeless: Sequence[Replica]) -> tuple[int, int, int]:
    served = {t.replica.group.name for server in layout.servers.values() for t in server.tenants}
    down = {replica.group.name for replica in homeless} - served
    return len(down), len(homeless), layout.gpus_used


def _repaired(layout: Layout, homeless: Sequence[Replica], pins: Sequence[Pin]) -> tuple[Layout, tuple[Replica, ...]]:
    """Room made for one replica after the other, where there is any to make."""
    still = []
    effort = Effort()
    for replica in homeless:
        alone = best(Layout.empty(layout.terrain), replica)
        roomier = make_room(layout, replica, pins, effort) if alone else None
        layout = roomier or layout
        if roomier is None:
            still.append(replica)
    return layout, tuple(still)


def _servers(layout: Layout) -> tuple[ServerPlan, ...]:
    return tuple(
        ServerPlan(
            name=server.name,
            node=server.node,
            gpus=server.gpus,
            placements=tuple(
                placement
                for tenant in sorted(server.tenants, key=lambda tenant: tenant.replica.key)
                for placement in _placements(tenant.replica.group, tenant.assignment)
            ),
        )
        for server in layout.servers.values()
    )


def _placements(group: Group, assignment: Sequence[tuple[int, ...]]) -> list[Placement]:
    return [
        Placement(
            model=demand.model,
            version=demand.version,
            group=group.name,
            gpus=gpus,
            instances=demand.instances,
            memory=demand.footprint.memory,
            compute=demand.footprint.compute,
            whole=demand.footprint.whole,
        )
        for demand, gpus in zip(group.demands, assignment, strict=True)
    ]


def _unplaced(layout: Layout, replica: Replica) -> Unplaced:
    group = replica.group
    why = explain(layout, replica)
    return Unplaced(group.name, tuple(demand.model for demand in group.demands), why.reason, why.message)

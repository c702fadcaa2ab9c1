"""A pool planned again where few of its groups differ from the last plan: these next to all that it keeps."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from argosy.planning.facts import Device, PoolFacts
from argosy.planning.nodes.reservations import retained
from argosy.planning.packing.bound.replicas import BoundReplica, bind, bound_replicas
from argosy.planning.packing.capacity import is_cpu_only
from argosy.planning.packing.filling.missing import absent
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.lower_bound import gpus_one_per_model, placed_groups
from argosy.planning.packing.nearby.fill import filled_part, part_for
from argosy.planning.packing.nearby.part import Part
from argosy.planning.packing.nearby.spare import SpareNode, seats_of, spare_nodes
from argosy.planning.packing.reuse.basis import Basis
from argosy.planning.packing.reuse.difference import changed_groups
from argosy.planning.packing.servers import server_plans, settled_names
from argosy.planning.plan import PoolPlan, ServerPlan
from argosy.planning.server_names import natural

_FEW_GROUPS = 32
"""Groups that are planned apart from the others: more of them are planned faster with all."""


def replanned(last: PoolFacts, plan: PoolPlan, facts: PoolFacts, taken: Collection[Device]) -> PoolPlan | None:
    """Return the plan of these facts, of which the last one had `plan`; None where all of the pool is to be planned.
    The plan lacks no replica.

    `taken`: the GPUs of other pools' plans.
    """
    if not _is_settled(plan, facts):
        return None
    different, cautious = changed_groups(last, plan, facts), facts.with_peaks
    if different is None:
        return None
    changed = different | _varying(facts, cautious)
    if len(changed) > _FEW_GROUPS:
        return None
    if not changed:
        return replace(plan, lost=()) if plan.lost else plan
    layout = _layout(Basis.of(cautious, plan, changed))
    if layout is None:
        return None
    here = _servers(layout, facts, plan, taken)
    before = [server for server in plan.servers if server.node in layout.unallocated]
    servers = _merged(plan.servers, before, here)
    if len(servers) < facts.min_servers:
        return None
    more = _one_per_model(facts, changed, here) - _one_per_model(last, changed, before)
    return replace(
        plan,
        servers=servers,
        gpus_used=sum(len(server.gpus) for server in servers),
        gpus_one_per_model=plan.gpus_one_per_model + more,
        lost=(),
    )


def _varying(facts: PoolFacts, cautious: PoolFacts) -> frozenset[str]:
    """Return the groups that may take more than they need, for a candidate or a peak: they get it where there is space,
    and lose it where something else needs that.
    """
    pairs = zip(facts.groups, cautious.groups, strict=True)
    return frozenset(group.name for group, with_peak in pairs if group is not with_peak or group.in_rollout)


def _is_settled(plan: PoolPlan, facts: PoolFacts) -> bool:
    """Return whether nothing that is placed by a plan waits for a better place."""
    if facts.suspended or is_cpu_only(facts):
        return False
    left = {node.name for node in facts.nodes if node.lost or any(gpu.leaving for gpu in node.gpus)}
    if any(server.node in left for server in plan.servers) or any(server.node in left for server in facts.current):
        return False
    return all(
        server.placements and not any(placement.misplaced for placement in server.placements) for server in plan.servers
    )


def _layout(basis: Basis) -> Layout | None:
    """Return the layout of a part of the pool, with the changed groups on it; None where they do not all have a place,
    or what stays is not settled by them alone.
    """
    own = basis.nodes()
    start = _bound(basis, own)
    if start is None:
        return None
    todo = [replica for replica in absent(start) if replica.group.name in basis.changed]
    if not todo:
        return start
    part = _part(basis, start, todo)
    wide = _bound(basis, own | part.nodes) if part is not None else None
    return filled_part(wide, todo, part) if part is not None and wide is not None else None


def _part(basis: Basis, start: Layout, todo: Sequence[Replica]) -> Part | None:
    facts = basis.facts

    def spare() -> list[SpareNode]:
        return spare_nodes(facts.nodes, facts.headroom, (*seats_of(start), *basis.seats(start)))

    return part_for(start, todo, spare, sum(node.ready for node in facts.nodes))


def _bound(basis: Basis, nodes: Collection[str]) -> Layout | None:
    """Return the layout of these nodes with the changed groups where they run; None where one of them that needs no
    more than before cannot stay.
    """
    layout, by_name = basis.layout(nodes), {node.name: node for node in basis.facts.nodes}
    if layout is None:
        return None
    every = bound_replicas(replace(basis.facts, groups=basis.groups))
    bound = [one for one in every if not one.leaves(by_name.get(one.server.node))]
    after = bind(layout, bound)
    return after if all(_stays(after, one) or one.grown for one in bound) else None


def _stays(layout: Layout, bound: BoundReplica) -> bool:
    server = layout.servers.get(bound.server.name)
    return server is not None and server.has(bound.replica)


def _servers(layout: Layout, facts: PoolFacts, plan: PoolPlan, taken: Collection[Device]) -> tuple[ServerPlan, ...]:
    """Return the servers of a part of the pool, with the GPUs that they retain."""
    here = replace(plan, servers=settled_names(layout, server_plans(layout)))
    return retained(here, replace(layout.topology.facts, loaded=facts.loaded), taken).servers


def _merged(
    servers: Iterable[ServerPlan], before: Iterable[ServerPlan], here: Iterable[ServerPlan]
) -> tuple[ServerPlan, ...]:
    """Return all servers, those of a part as they are `here`, in the order of their names; equal ones are the same."""
    there = {server.name: server for server in before}
    same = [there[server.name] if there.get(server.name) == server else server for server in here]
    rest = [server for server in servers if server.name not in there]
    return tuple(sorted([*rest, *same], key=lambda server: natural(server.name)))


def _one_per_model(facts: PoolFacts, changed: Collection[str], servers: Sequence[ServerPlan]) -> int:
    groups = tuple(group for group in facts.groups if group.name in changed)
    return gpus_one_per_model(placed_groups(groups, servers))

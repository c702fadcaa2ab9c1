"""Reference values for a plan: a lower bound of its GPUs, and the GPUs of a deployment with one model per GPU."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from argosy.planning.facts import Group, PoolFacts
from argosy.planning.packing.capacity import FULL_COMPUTE, gpus_of, usable_memory
from argosy.planning.plan import FleetPlan, ServerPlan


def fewest_gpus(plan: FleetPlan, facts: Sequence[PoolFacts]) -> int:
    """Return GPUs that no plan can do without which places what this one places."""
    groups = {pool.pool: pool.groups for pool in facts}
    placed = {pool.pool: placed_groups(groups[pool.pool], pool.servers) for pool in plan.pools}
    return sum(lower_bound(replace(pool, groups=placed[pool.pool])) for pool in facts if pool.pool in placed)


def lower_bound(facts: PoolFacts) -> int:
    """Return GPUs no plan can do without: the whole ones, and the most that any single dimension of the shared ones
    asks for.

    0 for a pool without GPUs, where CPUs stand in for them, and for a suspended one.
    """
    sizes = [usable_memory(gpu, facts.headroom) for node in facts.nodes for gpu in gpus_of(node) if not gpu.withheld_by]
    if facts.suspended or not sizes:
        return 0
    capacity = max(sizes)
    exclusive = sum(d.footprint.gpus * group.replicas for group in facts.groups for d in group.demands)
    return exclusive + max(
        _volume(facts.groups, "memory", capacity),
        _volume(facts.groups, "compute", FULL_COMPUTE),
        _apart(facts.groups),
    )


def placed_groups(groups: Sequence[Group], servers: Sequence[ServerPlan]) -> tuple[Group, ...]:
    """Return the groups with the replicas that servers have of them. What fits nowhere takes no GPU in any plan."""
    seen = Counter(name for server in servers for name in {placement.group for placement in server.placements})
    placed = []
    for group in groups:
        replicas = min(group.replicas, seen[group.name])
        demands = tuple(replace(demand, replicas=min(demand.replicas, replicas)) for demand in group.demands)
        placed += [replace(group, replicas=replicas, demands=demands)] if replicas else []
    return tuple(placed)


def gpus_one_per_model(groups: Sequence[Group]) -> int:
    """Return GPUs if each replica of each model had its own: as many as it needs whole, else one, also for a
    CPU-only stage.

    Each model counts its own replicas: on its own it would not have to follow the others of its ensemble.
    """
    demands = [demand for group in groups for demand in group.demands]
    return sum(max(demand.footprint.shares, demand.footprint.gpus) * demand.replicas for demand in demands)


def _volume(groups: Sequence[Group], dimension: str, capacity: int) -> int:
    needs = ((group.replicas, d.footprint) for group in groups for d in group.demands if not d.footprint.exclusive)
    total = sum(replicas * need.shares * int(getattr(need, dimension)) for replicas, need in needs)
    return -(-total // max(1, capacity))


def _apart(groups: Sequence[Group]) -> int:
    """Return the GPUs for replicas that sit on different servers, as servers share no GPU."""
    shared = [g for g in groups if any(not d.footprint.exclusive and not d.footprint.on_cpu for d in g.demands)]
    return max((group.replicas for group in shared), default=0)

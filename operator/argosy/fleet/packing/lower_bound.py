"""How few GPUs could do, and how many the simplest deployment takes: what a plan is measured against."""

from collections.abc import Sequence

from argosy.fleet.facts import Group, PoolFacts
from argosy.fleet.packing.capacity import FULL_COMPUTE, gpus_of, usable_memory


def lower_bound(facts: PoolFacts) -> int:
    """GPUs no plan can do without: the whole ones, and the most that any single dimension of the shared ones
    asks for.

    0 for a pool without GPUs, where CPUs stand in for them, and for a suspended one.
    """
    sizes = [usable_memory(gpu, facts.headroom) for node in facts.nodes for gpu in gpus_of(node) if not gpu.withheld_by]
    if facts.suspended or not sizes:
        return 0
    capacity = max(sizes)
    whole = sum(d.footprint.gpus * group.replicas for group in facts.groups for d in group.demands)
    return whole + max(
        _volume(facts.groups, "memory", capacity),
        _volume(facts.groups, "compute", FULL_COMPUTE),
        _apart(facts.groups),
    )


def gpus_one_per_model(groups: Sequence[Group]) -> int:
    """GPUs if each replica of each model had its own: as many as it needs whole, else one, also for a
    CPU-only stage.

    Each model counts its own replicas: on its own it would not have to follow the others of its ensemble.
    """
    demands = [demand for group in groups for demand in group.demands]
    return sum(max(1, demand.footprint.gpus) * demand.replicas for demand in demands)


def _volume(groups: Sequence[Group], dimension: str, capacity: int) -> int:
    needs = ((group.replicas, d.footprint) for group in groups for d in group.demands if not d.footprint.whole)
    total = sum(replicas * int(getattr(need, dimension)) for replicas, need in needs)
    return -(-total // max(1, capacity))


def _apart(groups: Sequence[Group]) -> int:
    """Replicas sit on different servers, and servers share no GPU."""
    shared = [g for g in groups if any(not d.footprint.whole and not d.footprint.on_cpu for d in g.demands)]
    return max((group.replicas for group in shared), default=0)

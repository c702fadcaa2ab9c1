"""GPUs that no plan of a fleet can do without, by arithmetic alone: what proves an optimum without a search."""

from collections.abc import Sequence

from benchmarks.packing.fleets.fleet import FULL, Fleet, Group, Model


def lower_bound(fleet: Fleet) -> int:
    """Return the least GPUs of a plan with everything placed. Pools share no GPU, so their bounds add up."""
    groups: dict[str, list[Group]] = {pool.name: [] for pool in fleet.pools}
    for group in fleet.groups:
        groups[group.pool].append(group)
    return sum(_of_pool(fleet, pool, of_pool) for pool, of_pool in groups.items())


def _of_pool(fleet: Fleet, pool: str, groups: Sequence[Group]) -> int:
    exclusive = sum(model.gpus * group.replicas for group in groups for model in group.models)
    shared = [model for group in groups for model in group.shared for _ in range(group.replicas)]
    usable = [fleet.usable(machine) for machine in fleet.machines_of(pool)]
    if not shared or not usable:
        return exclusive
    apart = max(group.replicas for group in groups if group.shared)
    memory = _bins([model.mib for model in shared], max(usable))
    return exclusive + max(
        apart, memory, _bins([model.compute for model in shared], FULL), _conflicting(shared, max(usable))
    )


def _bins(sizes: Sequence[int], capacity: int) -> int:
    """Return Martello and Toth's bound L2 of bins for these sizes: for every threshold, what is larger than the rest of
    a bin beyond it shares a bin with nothing above the threshold.
    """
    best = -(-sum(sizes) // capacity)
    for threshold in sorted({size for size in sizes if 0 < 2 * size <= capacity}):
        alone = sum(size > capacity - threshold for size in sizes)
        large = [size for size in sizes if capacity < 2 * size <= 2 * (capacity - threshold)]
        rest = sum(size for size in sizes if threshold <= size and 2 * size <= capacity)
        beyond = rest - (len(large) * capacity - sum(large))
        best = max(best, alone + len(large) + max(0, -(-beyond // capacity)))
    return best


def _conflicting(models: Sequence[Model], usable: int) -> int:
    """Return the size of a set of models no two of which share a GPU, by memory or by compute; found greedily."""
    chosen: list[Model] = []
    for model in sorted(models, key=lambda model: -max(model.mib / usable, model.compute / FULL)):
        if all(model.mib + other.mib > usable or model.compute + other.compute > FULL for other in chosen):
            chosen.append(model)
    return len(chosen)

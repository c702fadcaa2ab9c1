"""Reference values for a plan: a lower bound of its GPUs, and the GPUs of a deployment with one model per GPU.

What only some kinds of GPU will do for takes at least its bound there. Kinds that no model shares are added up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from argosy.planning.facts import Footprint, Group, Node, PoolFacts
from argosy.planning.packing.capacity import FULL_COMPUTE, gpus_holding, gpus_of
from argosy.planning.plan import FleetPlan, PoolPlan, ServerPlan, replica_counts
from argosy.planning.requirements import NOTHING, label_keys

_THRESHOLDS = 24
"""Sizes by which models are told apart in the bound of bins. More of them find little."""
Kinds = frozenset[int]


def fewest_gpus(plan: FleetPlan, facts: Sequence[PoolFacts]) -> int:
    """Return GPUs that no plan can do without which places what this one places."""
    by_pool = {pool.pool: pool for pool in facts}
    return sum(fewest_of_pool(pool, by_pool[pool.pool]) for pool in plan.pools if pool.pool in by_pool)


def fewest_of_pool(plan: PoolPlan, facts: PoolFacts) -> int:
    """Return GPUs that no plan of a pool can do without which places what this one places."""
    misplaced = {one.group for server in plan.servers for one in server.placements if one.misplaced}
    groups = placed_groups(facts.groups, plan.servers)
    if misplaced:
        groups = tuple(one.anywhere() if one.name in misplaced else one for one in groups)
    return lower_bound(replace(facts, groups=groups))


def lower_bound(facts: PoolFacts) -> int:
    """Return GPUs no plan can do without: the most of all kinds of GPU together, and of disjoint kinds one by one.

    0 for a pool without GPUs, where CPUs stand in for them, and for a suspended one.
    """
    nodes = _alike(facts)
    sizes = {kind: _sizes(alike, facts.headroom) for kind, alike in enumerate(nodes)}
    if facts.suspended or not any(sizes.values()):
        return 0
    kinds_of, every = _kinds_by_group(facts.groups, nodes), frozenset(sizes)
    bounds = {kinds: _bound_of_kinds(facts.groups, kinds_of, kinds, sizes) for kinds in {*kinds_of.values(), every}}
    apart, taken = 0, Kinds()
    for kinds in sorted(bounds, key=lambda kinds: (len(kinds), -bounds[kinds], sorted(kinds))):
        if kinds.isdisjoint(taken):
            apart, taken = apart + bounds[kinds], taken | kinds
    return max(bounds[every], apart)


def _bound_of_kinds(
    groups: Sequence[Group], kinds_of: Mapping[str, Kinds], kinds: Kinds, sizes: Mapping[int, Sequence[int]]
) -> int:
    """Return GPUs that the groups take which may have nodes of these kinds alone."""
    bound_to = [group for group in groups if kinds_of[group.name] <= kinds]
    return _bound(bound_to, [size for kind in sorted(kinds) for size in sizes[kind]])


def _sizes(nodes: Iterable[Node], headroom: int) -> list[int]:
    """Return the usable bytes of each GPU of nodes that may be planned with."""
    return [gpu.usable(headroom) for node in nodes for gpu in gpus_of(node) if not gpu.withheld_by]


def placed_groups(groups: Sequence[Group], servers: Sequence[ServerPlan]) -> tuple[Group, ...]:
    """Return the groups with the replicas that servers have of them. What fits nowhere takes no GPU in any plan."""
    seen = replica_counts(servers)
    return tuple(_with_replicas(group, min(group.replicas, seen[group.name])) for group in groups if seen[group.name])


def _with_replicas(group: Group, replicas: int) -> Group:
    if replicas == group.replicas and all(demand.replicas <= replicas for demand in group.demands):
        return group
    demands = tuple(replace(demand, replicas=min(demand.replicas, replicas)) for demand in group.demands)
    return replace(group, replicas=replicas, demands=demands)


def gpus_one_per_model(groups: Sequence[Group]) -> int:
    """Return GPUs if each replica of each model had its own: as many as it needs whole, else one, also for a
    CPU-only stage.

    Each model counts its own replicas: on its own it would not have to follow the others of its ensemble.
    """
    demands = [demand for group in groups for demand in group.demands]
    return sum(max(demand.footprint.shares, demand.footprint.gpus) * demand.replicas for demand in demands)


def _alike(facts: PoolFacts) -> list[list[Node]]:
    """Return the nodes in classes of which a group may have all nodes or none."""
    labels = sorted(label_keys(demand.requires for group in facts.groups for demand in group.demands))
    classes: dict[object, list[Node]] = {}
    for node in facts.nodes:
        gpus = node.product, node.compute_capability, node.has_gpus, node.architecture(on_gpu=False)
        classes.setdefault((gpus, tuple(node.labels.get(key) for key in labels)), []).append(node)
    return list(classes.values())


def _kinds_by_group(groups: Iterable[Group], nodes: Sequence[Sequence[Node]]) -> dict[str, Kinds]:
    """Return the kinds of nodes that each group may have. One that runs where it may not may have any."""
    every = frozenset(range(len(nodes)))
    result, of_requirements = dict[str, Kinds](), dict[object, Kinds]()
    for group in groups:
        if all(demand.requires is NOTHING and demand.architectures is None for demand in group.demands):
            result[group.name] = every
            continue
        key = tuple((demand.requires, demand.architectures) for demand in group.demands)
        if key not in of_requirements:
            kinds = (number for number, alike in enumerate(nodes) if group.runs_on(alike[0]))
            of_requirements[key] = frozenset(kinds) or every
        result[group.name] = of_requirements[key]
    return result


def _bound(groups: Sequence[Group], sizes: Sequence[int]) -> int:
    """Return GPUs that these groups take at least of GPUs with these usable bytes."""
    exclusive = sum(d.footprint.gpus * group.replicas for group in groups for d in group.demands)
    shares = [
        (d.footprint, group.replicas * d.footprint.shares)
        for group in groups
        for d in group.demands
        if not d.footprint.exclusive and not d.footprint.on_cpu
    ]
    if not shares or not sizes:
        return exclusive
    largest = max(sizes)
    memory = Counter[int]()
    compute = Counter[int]()
    for need, count in shares:
        memory[need.memory] += count
        compute[need.compute] += count
    return exclusive + max(
        gpus_holding(sum(size * count for size, count in memory.items()), sizes),
        fewest_bins(memory, largest),
        fewest_bins(compute, FULL_COMPUTE),
        max(group.replicas for group in groups if any(_shares_gpu(d.footprint) for d in group.demands)),
    )


def _shares_gpu(need: Footprint) -> bool:
    return not need.exclusive and not need.on_cpu


def fewest_bins(sizes: Counter[int], capacity: int) -> int:
    """Return Martello and Toth's bound L2 of bins for sizes, by their numbers: for every threshold, what is larger than
    the rest of a bin beyond it shares a bin with nothing above the threshold.
    """
    best = -(-sum(size * count for size, count in sizes.items()) // capacity)
    small = sorted({size for size in sizes if 0 < 2 * size <= capacity})
    for threshold in small[:: max(1, len(small) // _THRESHOLDS)] or [0]:
        alone = sum(count for size, count in sizes.items() if size > capacity - threshold)
        large = [(size, count) for size, count in sizes.items() if capacity < 2 * size <= 2 * (capacity - threshold)]
        rest = sum(size * count for size, count in sizes.items() if threshold <= size and 2 * size <= capacity)
        number = sum(count for _, count in large)
        beyond = rest - sum((capacity - size) * count for size, count in large)
        best = max(best, alone + number + max(0, -(-beyond // capacity)))
    return best

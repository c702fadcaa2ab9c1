"""The remedies of all that has no place, once for replicas that need the same."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from argosy.api import Reason
from argosy.api.values.identity import PoolKey
from argosy.planning.explanation.remedies.devices import PoolDevices
from argosy.planning.explanation.remedies.further_nodes import further_nodes
from argosy.planning.explanation.remedies.instances import instances
from argosy.planning.explanation.remedies.memory import freed_memory, lower_headroom
from argosy.planning.explanation.remedies.others import (
    fewer_replicas,
    higher_priority,
    others_that_leave,
    preemption,
    preemption_of_other_pools,
)
from argosy.planning.explanation.remedies.remedy import Remedy
from argosy.planning.explanation.remedies.settings import settings
from argosy.planning.explanation.remedies.trial import Trial
from argosy.planning.facts import CurrentServer, Device, Group, OtherPools, PoolFacts, PreemptibleGpu
from argosy.planning.packing.equivalence import Shape, explained_shape
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.packing.layout import Replica
from argosy.planning.packing.shared_nodes.preemptible import protected_gpus
from argosy.planning.plan import FleetPlan, PoolPlan

GroupKey = tuple[PoolKey, str]
Remedies = Mapping[GroupKey, tuple[Remedy, ...]]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried. `remedies`: the most for each demand; `demands`: the most demands, those of the highest
    priority first; `replicas`: the most replicas that all trials together plan, and `largest` one of them.
    """

    remedies: int
    demands: int
    replicas: int
    largest: int


THOROUGH = Effort(remedies=4, demands=64, replicas=200_000, largest=20_000)
"""What a command tries."""
OF_A_ROUND = Effort(remedies=1, demands=4, replicas=2_000, largest=500)
"""What a round of the operator tries: some ten trials of single nodes, which take some tens of milliseconds."""


def find_remedies(
    facts: Sequence[PoolFacts],
    plan: FleetPlan,
    effort: Effort,
    originals: Mapping[str, str] | None = None,
    others: OtherPools | None = None,
) -> Remedies:
    """Return the remedies of the groups that have a replica without a place, the smallest change first.

    Each is confirmed by planning with it from what runs once the plan is carried out. Several replicas that need the
    same count once, and each remedy is for one of them, while all else stays without a place.
    `originals`: nodes that are only tried, each with the node that it is a copy of; `others`: pools that are not among
    these.
    """
    budget, result = Budget(effort.replicas), dict[GroupKey, tuple[Remedy, ...]]()
    running = {pool.pool: pool.current for pool in plan.pools}
    of_pool = {pool.pool: pool for pool in facts}
    lacking = [pool for pool in plan.pools if pool.unplaced and not of_pool[pool.pool].suspended]
    protected = _protected(of_pool, plan, others or OtherPools()) if lacking else {}
    for pool in lacking:
        result |= _of_pool(of_pool[pool.pool], pool, running, budget, effort, originals or {}, protected)
    return result


def _protected(
    facts: Mapping[PoolKey, PoolFacts], plan: FleetPlan, others: OtherPools
) -> Mapping[Device, PreemptibleGpu]:
    """Return the GPUs that higher priorities would have if their pools let them."""
    protected = dict(others.protected)
    for pool in plan.pools if len(plan.pools) > 1 else ():
        protected |= protected_gpus(facts[pool.pool], pool)
    return protected


def _of_pool(
    facts: PoolFacts,
    plan: PoolPlan,
    running: Mapping[PoolKey, Sequence[CurrentServer]],
    budget: Budget,
    effort: Effort,
    originals: Mapping[str, str],
    protected: Mapping[Device, PreemptibleGpu],
) -> dict[GroupKey, tuple[Remedy, ...]]:
    others = {key: servers for key, servers in running.items() if key != facts.pool}
    classes = _classes(facts, plan)
    if not classes:
        return {}
    pool = PoolDevices(Trial.of(facts, plan, others, budget, effort.largest, protected))
    result = dict[GroupKey, tuple[Remedy, ...]]()
    for groups in classes[: effort.demands]:
        first, replicas = groups[0][0], sum(count for _, count in groups)
        remedies = tuple(islice(_remedies(pool, first, replicas, originals), effort.remedies))
        result |= {(facts.pool, group.name): remedies for group, _ in groups if remedies}
    return result


def _classes(facts: PoolFacts, plan: PoolPlan) -> list[list[tuple[Group, int]]]:
    """Return the groups without a place and how many of their replicas have none, those together that need the same,
    the highest priority first. What only waits is not among them.
    """
    groups, counts = {group.name: group for group in facts.groups}, dict[str, int]()
    for unplaced in plan.unplaced:
        if unplaced.reason != Reason.PENDING and unplaced.group in groups:
            counts[unplaced.group] = counts.get(unplaced.group, 0) + 1
    classes: dict[Shape, list[tuple[Group, int]]] = {}
    for name in sorted(counts, key=lambda name: (-groups[name].priority, name)):
        group = groups[name]
        classes.setdefault(explained_shape(Replica(group, 0)), []).append((group, counts[name]))
    return list(classes.values())


def _remedies(pool: PoolDevices, group: Group, replicas: int, originals: Mapping[str, str]) -> Iterator[Remedy]:
    """Yield the remedies of one demand, the smallest change first."""
    yield from settings(pool, group)
    yield from preemption(pool, group)
    yield from freed_memory(pool, group)
    yield from lower_headroom(pool, group)
    yield from higher_priority(pool, group)
    yield from preemption_of_other_pools(pool, group)
    yield from instances(pool, group)
    yield from fewer_replicas(pool, group)
    yield from others_that_leave(pool, group)
    yield from further_nodes(pool, group, replicas, originals)

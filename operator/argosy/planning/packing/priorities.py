"""The plan by priorities: what lacks a required replica, and what lacks optional ones alone."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.api.values.identity import PoolKey
from argosy.planning.amounts import quantity
from argosy.planning.facts import Group, OtherPools, PoolFacts
from argosy.planning.packing.pools import pack_fleet
from argosy.planning.packing.reuse.fleet import replanned_fleet
from argosy.planning.plan import FleetPlan, PoolPlan, ServerPlan, replica_counts

_MORE = 16
"""Replicas more that all groups together may hope for, and each for one: what finds no place takes time to explain."""
GroupKey = tuple[PoolKey, str]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Optional replicas of a group that are not placed. `placed`: the number that are; `message`: the resource that the
    next replica lacks, or the group that has it.
    """

    placed: int
    message: str


@dataclass(frozen=True, slots=True)
class RankedPlan:
    """A plan by priorities. Only required and declared replicas are unplaced in `plan`; `shortfalls` has the missing
    ones of others, by pool and group. `facts` and `others`: the inputs of the plan.
    """

    plan: FleetPlan
    facts: tuple[PoolFacts, ...]
    shortfalls: Mapping[GroupKey, Shortfall] = field(default_factory=dict)
    others: OtherPools = field(default_factory=OtherPools)

    def with_more(self, desired: Mapping[GroupKey, int]) -> list[PoolFacts]:
        """Return the facts after this plan is applied, with the `desired` replicas of these groups: at least one more
        than they have in the plan, and at most a few more.
        """
        most = max(1, _MORE // max(1, len(desired)))
        return [
            replace(facts, current=plan.current, groups=tuple(_with_more(facts, plan, desired, most)))
            for facts, plan in zip(self.facts, self.plans(), strict=True)
        ]

    def plans(self) -> Iterator[PoolPlan]:
        """Return the plans in the order of the facts."""
        plans = {plan.pool: plan for plan in self.plan.pools}
        return (plans[facts.pool] for facts in self.facts)


def _with_more(facts: PoolFacts, plan: PoolPlan, desired: Mapping[GroupKey, int], most: int) -> Iterator[Group]:
    placed = replica_counts(plan.servers)
    for group in facts.groups:
        replicas, has = desired.get((facts.pool, group.name)), placed[group.name]
        yield group if replicas is None else replace(group, replicas=min(max(replicas, has + 1), has + most))


def pack_by_priority(
    pools: Sequence[PoolFacts], others: OtherPools | None = None, last: RankedPlan | None = None
) -> RankedPlan:
    """Return every pool's plan, as `pack_fleet` makes it, with what lacks only what scaling decided on set apart.

    Where the inputs equal those of the `last` plan, return that. Where they differ little, plan what does: the plan is
    the same, and what it keeps of the last one is so by identity.
    """
    facts, outside = {pool.pool: pool for pool in pools}, others or OtherPools()
    if last is not None and _reads_alike(last, outside):
        if last.facts == tuple(facts.values()):
            return last
        reused = _reused(last, facts)
        if reused is not None:
            return reused
    plan = pack_fleet(pools, outside)
    shortfalls: dict[GroupKey, Shortfall] = {}
    ranked = tuple(_without_extras(pool_plan, facts[pool_plan.pool], shortfalls) for pool_plan in plan.pools)
    return RankedPlan(FleetPlan(ranked), tuple(facts.values()), shortfalls, outside)


def _reads_alike(last: RankedPlan, others: OtherPools) -> bool:
    """Return whether the last plan would be the same next to these pools: one that lacks nothing takes nothing."""
    if last.others.claims != others.claims:
        return False
    return last.others.preemptible == others.preemptible or not any(
        len(plan.unplaced) > _waiting(facts) for facts, plan in zip(last.facts, last.plans(), strict=True)
    )


def _reused(last: RankedPlan, facts: Mapping[PoolKey, PoolFacts]) -> RankedPlan | None:
    """Return the plan of facts that differ little from the last ones; None where all is to be planned."""
    if last.others.claims or any(plan.claims or plan.preempted or plan.gained for plan in last.plan.pools):
        return None
    before = {pool.pool: pool for pool in last.facts}
    lacking = {pool for pool, _ in last.shortfalls}
    lacking |= {plan.pool for plan in last.plan.pools if len(plan.unplaced) > _waiting(before[plan.pool])}
    plan = replanned_fleet(before, last.plan, facts, lacking)
    return replace(last, plan=plan, facts=tuple(facts.values())) if plan is not None else None


def _waiting(facts: PoolFacts) -> int:
    """Return how many replicas are not to be placed yet."""
    return sum(model.replicas for model in facts.waiting)


def _without_extras(plan: PoolPlan, facts: PoolFacts, shortfalls: dict[GroupKey, Shortfall]) -> PoolPlan:
    """Return the plan without the unplaced replicas that are neither required nor declared, which are added to the
    shortfalls.
    """
    placed, winners = replica_counts(plan.servers), {lost.group: lost.winner_for(plan.pool) for lost in plan.lost}
    extras = {group.name for group in facts.groups if placed[group.name] >= max(group.needed, group.declared)}
    for group, missing in Counter(unplaced.group for unplaced in plan.unplaced).items():
        if group in extras:
            why = next(unplaced.message for unplaced in plan.unplaced if unplaced.group == group)
            if group in winners:
                why = f"{quantity(missing, 'replica')} gave way to {winners[group]}, which comes first"
            shortfalls[plan.pool, group] = Shortfall(placed[group], why)
    return replace(plan, unplaced=tuple(one for one in plan.unplaced if one.group not in extras))


def lacking_groups(ranked: RankedPlan, key: PoolKey) -> frozenset[str]:
    """Return the groups of a pool that lack a replica, required or not."""
    unplaced = (one.group for plan in ranked.plan.pools if plan.pool == key for one in plan.unplaced)
    return frozenset(unplaced) | {group for pool, group in ranked.shortfalls if pool == key}


def replicas_of(plan: FleetPlan, pool: PoolKey, group: str) -> int:
    """Return how many replicas of a group are placed."""
    return next((replica_counts(pool_plan.servers)[group] for pool_plan in plan.pools if pool_plan.pool == pool), 0)


def servers_of(plan: FleetPlan, pool: PoolKey, group: str) -> dict[str, ServerPlan]:
    """Return the servers that a group is placed on, by name."""
    servers = (server for of_pool in plan.pools if of_pool.pool == pool for server in of_pool.servers)
    return {server.name: server for server in servers if group in server.groups}

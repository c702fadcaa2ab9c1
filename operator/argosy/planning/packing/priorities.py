"""Priorities: replicas beyond a group's minimum give way to groups below their minimum, or of higher priority."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.api.values.identity import PoolKey
from argosy.planning.amounts import quantity
from argosy.planning.facts import Device, Group, PoolFacts
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.packing.pools import pack_fleet
from argosy.planning.plan import FleetPlan, PoolPlan, ServerPlan

_TRIES = 16
"""The most times that a full plan is made again, for all pools together."""
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
    """A plan by priorities. Only required replicas are unplaced in `plan`; `shortfalls` has the missing optional ones,
    by pool and group. `facts`: the inputs of the plan.
    """

    plan: FleetPlan
    facts: tuple[PoolFacts, ...]
    shortfalls: Mapping[GroupKey, Shortfall] = field(default_factory=dict)

    def with_more(self, desired: Mapping[GroupKey, int]) -> list[PoolFacts]:
        """Return the facts after this plan is applied, with the `desired` replicas of these groups: at least one more
        than they have in the plan, and at most a few more.
        """
        most = max(1, _MORE // max(1, len(desired)))
        return [
            replace(facts, current=plan.current, groups=tuple(_with_more(facts, plan, desired, most)))
            for facts, plan in zip(self.facts, self._plans(), strict=True)
        ]

    def _plans(self) -> Iterator[PoolPlan]:
        """Return the plans in the order of the facts."""
        plans = {plan.pool: plan for plan in self.plan.pools}
        return (plans[facts.pool] for facts in self.facts)


def _with_more(facts: PoolFacts, plan: PoolPlan, desired: Mapping[GroupKey, int], most: int) -> Iterator[Group]:
    placed = _placed(plan)
    for group in facts.groups:
        replicas, has = desired.get((facts.pool, group.name)), placed[group.name]
        yield group if replicas is None else replace(group, replicas=min(max(replicas, has + 1), has + most))


def pack_by_priority(pools: Sequence[PoolFacts], claimed: Iterable[Device] = ()) -> RankedPlan:
    """Return every pool's plan, as `pack_fleet` makes it, in which what matters less has given way."""
    claims = frozenset(claimed)
    facts = {pool.pool: pool for pool in pools}
    plan = pack_fleet(list(facts.values()), claims)
    yielded: dict[GroupKey, str] = {}
    budget = Budget(_TRIES)
    while (improved := next(_improved(facts, plan, claims, budget), None)) is not None:
        key, better, plan, winner = improved
        facts[key[0]] = better
        yielded[key] = winner
    return _without_extras(plan, facts, {pool.pool: pool for pool in pools}, yielded)


def _improved(
    facts: Mapping[PoolKey, PoolFacts], plan: FleetPlan, claimed: frozenset[Device], budget: Budget
) -> Iterator[tuple[GroupKey, PoolFacts, FleetPlan, str]]:
    """Yield plans with one more replica of what has a higher claim: the group that gives one up, the facts then, the
    plan, and the group that gains.
    """
    for pool_plan in plan.pools:
        for winner, loser in _rivals(facts[pool_plan.pool], pool_plan):
            if not budget.spend():
                return
            fewer = _with_replicas(facts[pool_plan.pool], loser.name, loser.replicas - 1)
            better = pack_fleet([*{**facts, pool_plan.pool: fewer}.values()], claimed)
            if _lack(better, pool_plan.pool, winner.name) < _lack(plan, pool_plan.pool, winner.name):
                yield (pool_plan.pool, loser.name), fewer, better, winner.name


def _rivals(facts: PoolFacts, plan: PoolPlan) -> Iterator[tuple[Group, Group]]:
    """Yield what lacks a replica with what has one to give up: the highest claim first, the lowest priority first."""
    lacking, placed = _lacking(plan), _placed(plan)
    short = [group for group in facts.groups if lacking[group.name]]
    rich = [group for group in facts.groups if placed[group.name] > group.needed]
    for winner in sorted(short, key=lambda group: (-_claim(group, placed)[0], -_claim(group, placed)[1], group.name)):
        for loser in sorted(rich, key=lambda group: (group.priority, -placed[group.name], group.name)):
            if loser.name != winner.name and (loser.priority, 0) < _claim(winner, placed):
                yield winner, replace(loser, replicas=placed[loser.name])


def _claim(group: Group, placed: Mapping[str, int]) -> tuple[int, int]:
    """Return the weight of a group's next replica: its priority, and whether it is below the minimum."""
    return group.priority, int(placed.get(group.name, 0) < group.needed)


def _with_replicas(facts: PoolFacts, name: str, replicas: int) -> PoolFacts:
    groups = tuple(replace(group, replicas=replicas) if group.name == name else group for group in facts.groups)
    return replace(facts, groups=groups)


def _without_extras(
    plan: FleetPlan,
    facts: Mapping[PoolKey, PoolFacts],
    requested: Mapping[PoolKey, PoolFacts],
    yielded: Mapping[GroupKey, str],
) -> RankedPlan:
    """Return the plan, with unplaced replicas beyond a minimum as shortfalls."""
    shortfalls: dict[GroupKey, Shortfall] = {}
    pools = []
    for pool_plan in plan.pools:
        placed = _placed(pool_plan)
        extras = {group.name for group in requested[pool_plan.pool].groups if placed[group.name] >= group.needed}
        for unplaced in pool_plan.unplaced:
            if unplaced.group in extras:
                shortfalls[pool_plan.pool, unplaced.group] = Shortfall(placed[unplaced.group], unplaced.message)
        pools.append(replace(pool_plan, unplaced=tuple(u for u in pool_plan.unplaced if u.group not in extras)))
        for (pool, name), winner in yielded.items():
            if pool == pool_plan.pool:
                had = quantity(_replicas(requested[pool], name) - placed[name], "replica")
                shortfalls[pool, name] = Shortfall(placed[name], f"{had} gave way to {winner}, which comes first")
    return RankedPlan(FleetPlan(tuple(pools)), tuple(facts.values()), shortfalls)


def _replicas(facts: PoolFacts, name: str) -> int:
    return next(group.replicas for group in facts.groups if group.name == name)


def _lacking(plan: PoolPlan) -> Counter[str]:
    """Return the number of unplaced replicas, by group."""
    return Counter(unplaced.group for unplaced in plan.unplaced)


def _lack(plan: FleetPlan, pool: PoolKey, group: str) -> int:
    return next(_lacking(pool_plan)[group] for pool_plan in plan.pools if pool_plan.pool == pool)


def replicas_of(plan: FleetPlan, pool: PoolKey, group: str) -> int:
    """Return how many replicas of a group are placed."""
    return next((_placed(pool_plan)[group] for pool_plan in plan.pools if pool_plan.pool == pool), 0)


def servers_of(plan: FleetPlan, pool: PoolKey, group: str) -> dict[str, ServerPlan]:
    """Return the servers that a group is placed on, by name."""
    servers = (server for of_pool in plan.pools if of_pool.pool == pool for server in of_pool.servers)
    return {server.name: server for server in servers if any(one.group == group for one in server.placements)}


def _placed(plan: PoolPlan) -> Counter[str]:
    """Return the number of placed replicas, by group."""
    servers = ({placement.group for placement in server.placements} for server in plan.servers)
    return Counter(group for groups in servers for group in groups)

"""Claims on GPUs of other pools, for a replica that must serve and comes before what these have there."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from argosy.api import Reason
from argosy.planning.amounts import listed, quantity
from argosy.planning.facts import Claim, Device, Group, Node, PoolFacts, PreemptibleGpu, Rank
from argosy.planning.nodes.holders import pool_holder
from argosy.planning.nodes.reservations import devices, reclaimable
from argosy.planning.packing.shared_nodes.preemptible import servers_giving_way
from argosy.planning.packing.solve import pack
from argosy.planning.plan import LostPlacement, PoolPlan, Unplaced, replica_counts

_NAMED = 3
"""Holders of GPUs that a message names."""


def highest_missing(facts: PoolFacts, plan: PoolPlan) -> Iterator[Rank]:
    """Yield the ranks of replicas that must serve and lack a place, the highest first."""
    if not plan.unplaced:
        return
    placed = replica_counts(plan.servers)
    yield from sorted({group.rank(placed[group.name]) for group in facts.groups if placed[group.name] < group.needed})


def with_claims(
    facts: PoolFacts,
    plan: PoolPlan,
    rank: Rank,
    preemptible: Mapping[Device, PreemptibleGpu],
    claims: Mapping[Device, Claim],
) -> PoolPlan:
    """Return the plan with claims on GPUs by which replicas of a rank, and of those before it, have a place.

    The servers that give way are the fewest of those with the lowest ranks that will do. `claims` are those of other
    pools.
    """
    unclaimed = {
        device: gpu for device, gpu in preemptible.items() if device not in claims or rank < claims[device].rank
    }
    servers = servers_giving_way(facts.nodes, unclaimed, rank)
    if not servers:
        return plan
    spare = {*plan.claims, *reclaimable(facts.nodes)}
    hoped = _Search(_desired(facts, plan, rank), spare, servers, rank).fewest()
    if hoped is None:
        return plan
    held = devices(hoped.servers)
    used = {device: gpu for server in servers for device, gpu in server.items() if device in held}
    claims_of_rank = {device: replace(claim, rank=rank) for device, claim in claims_of(facts, plan, hoped).items()}
    waits = waits_for(
        len(used),
        {pool_holder(gpu.pool) for gpu in used.values()},
        "give up, because it comes before what they have there; that has the drain period to end its requests",
    )
    return replace(
        plan,
        claims={**claims_of_rank, **plan.claims},
        gained=(*plan.gained, *_taken(claims_of_rank, used)),
        unplaced=awaiting(plan, hoped, waits),
    )


_Server = Mapping[Device, PreemptibleGpu]


def _desired(facts: PoolFacts, plan: PoolPlan, rank: Rank) -> PoolFacts:
    """Return the facts of a pool that has what it planned, and wants in addition what must serve down to a rank."""
    placed = replica_counts(plan.servers)

    def desired(group: Group) -> Group:
        is_missing = placed[group.name] < group.needed and group.rank(0) <= rank
        return replace(group, replicas=group.needed if is_missing else placed[group.name])

    planned = {server.name for server in plan.servers}
    idle = (server for server in facts.current if server.name not in planned)
    groups = (desired(group) for group in facts.groups)
    return replace(facts, groups=tuple(group for group in groups if group.replicas), current=(*plan.current, *idle))


@dataclass(frozen=True, slots=True)
class _Search:
    """The fewest servers, in order, without which all is placed that has a place without all of them."""

    facts: PoolFacts
    claimed: Collection[Device]
    servers: Sequence[_Server]
    rank: Rank

    def fewest(self) -> PoolPlan | None:
        """Return the plan without the fewest; None where it does not help to take them all."""
        before = self._missing(self._without(0))
        best = self._without(len(self.servers)) if before else None
        if best is None or self._missing(best) >= before:
            return None
        least, low, high = self._missing(best), 1, len(self.servers)
        while low < high:
            middle = (low + high) // 2
            plan = self._without(middle)
            if self._missing(plan) <= least:
                best, high = plan, middle
            else:
                low = middle + 1
        return best

    def _without(self, count: int) -> PoolPlan:
        free = {*self.claimed, *(device for server in self.servers[:count] for device in server)}
        return pack(replace(self.facts, nodes=tuple(with_free(node, free) for node in self.facts.nodes)))

    def _missing(self, plan: PoolPlan) -> int:
        """Return how many replicas down to the rank are missing."""
        placed = replica_counts(plan.servers)
        desired = (group for group in self.facts.groups if group.rank(0) <= self.rank)
        return sum(max(0, group.needed - placed[group.name]) for group in desired)


def with_free(node: Node, devices: Collection[Device]) -> Node:
    """Return the node as if other pools did not hold these GPUs."""
    if not any((node.name, gpu.index) in devices for gpu in node.gpus):
        return node
    gpus = (replace(gpu, withheld_by="") if (node.name, gpu.index) in devices else gpu for gpu in node.gpus)
    return replace(node, gpus=tuple(gpus))


def claims_of(facts: PoolFacts, plan: PoolPlan, hoped: PoolPlan) -> dict[Device, Claim]:
    """Return the claims on the GPUs that a pool has in a hoped plan in addition, for the highest rank that it has there
    in addition. Free ones are among them: no other pool is to take these before the others are free, too.
    """
    placed = replica_counts(plan.servers)
    more = replica_counts(hoped.servers) - placed
    ranks = ((group.rank(placed[group.name]), group.name) for group in facts.groups if more[group.name])
    first = min(ranks, default=None)
    if first is None:
        return {}
    rank, group = first
    return {device: Claim(facts.pool, group, rank) for device in devices(hoped.servers) - devices(plan.servers)}


def awaiting(plan: PoolPlan, hoped: PoolPlan, message: str) -> tuple[Unplaced, ...]:
    """Return what is unplaced; a replica that only waits for claimed GPUs says so."""
    waiting = replica_counts(hoped.servers) - replica_counts(plan.servers)
    unplaced_left = []
    for unplaced in plan.unplaced:
        waits = waiting[unplaced.group] > 0
        waiting[unplaced.group] -= waits
        if waits and unplaced.reason != Reason.PENDING:
            unplaced = replace(unplaced, reason=Reason.PENDING, message=message)
        unplaced_left.append(unplaced)
    return tuple(unplaced_left)


def waits_for(gpus: int, holders: Collection[str], why: str) -> str:
    """Return for how many GPUs of which holders a replica waits, and why it gets them."""
    return f"it waits for {quantity(gpus, 'GPU')} that servers of {listed(sorted(holders), _NAMED, ', ')} {why}"


def _taken(claims: Mapping[Device, Claim], gpus: _Server) -> Iterable[LostPlacement]:
    """Return the places that claims take in other pools, each once."""
    taken = {
        LostPlacement(group, gpu.server, -rank[1], claims[device].group, claims[device].priority, gpu.pool)
        for device, gpu in gpus.items()
        if device in claims
        for rank, group in gpu.losses
    }
    return sorted(taken, key=lambda one: (one.group, one.server, one.winner))

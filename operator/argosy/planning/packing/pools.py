"""Several pools, one set of nodes: no GPU goes to two of them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from argosy.api import Reason
from argosy.planning.facts import Claim, CurrentServer, Device, Node, OtherPools, PoolFacts, Rank, highest_claims
from argosy.planning.nodes.reservations import devices, reclaimable, reserved, retained, withheld
from argosy.planning.packing.shared_nodes.claiming import (
    awaiting,
    claims_of,
    highest_missing,
    waits_for,
    with_claims,
    with_free,
)
from argosy.planning.packing.shared_nodes.preempted import without_claimed
from argosy.planning.packing.shared_nodes.preemptible import preemptible_gpus
from argosy.planning.packing.solve import pack
from argosy.planning.plan import FleetPlan, PoolPlan, Unplaced, replica_counts

_TRIES = 8
"""The most times that pools are planned again for one that has replicas without a place."""
_RANKS = 4
"""The most ranks of all pools that take GPUs from other pools in one plan, the highest first."""


def pack_fleet(pools: Sequence[PoolFacts], others: OtherPools | None = None) -> FleetPlan:
    """Return every pool's plan, in the order of their keys, with what running servers keep.

    A pool leaves alone what earlier ones take and what others hold. Where it finds no place then, it comes before those
    that could go elsewhere. For what fits nowhere else it claims GPUs that other pools' servers hold without need, and
    for what must serve those of servers that come after it: these give them up, and a later plan takes them. `others`
    are pools that are not among these.
    """
    outside = others or OtherPools()
    ordered = sorted(pools, key=lambda facts: facts.pool)
    plans = _by_rank(ordered, _with_others_moved(ordered, _in_turn(ordered, ordered, {})), outside)
    claims = _claims(plans, outside)
    for facts in ordered:
        plans[facts.pool] = _retained(facts, ordered, plans, claims)
    return FleetPlan(tuple(_with_withheld(facts, ordered, plans) for facts in ordered))


def _in_turn(
    turn: Iterable[PoolFacts], pools: Sequence[PoolFacts], plans: Mapping[str, PoolPlan]
) -> dict[str, PoolPlan]:
    """Return the plans with those of some pools in addition, each of which leaves alone what is planned before it."""
    after = dict(plans)
    for facts in turn:
        after[facts.pool] = _packed(_seen(facts, pools, after))
    return after


def _with_others_moved(pools: Sequence[PoolFacts], plans: dict[str, PoolPlan]) -> dict[str, PoolPlan]:
    """Return the plans in which pools leave GPUs that they do not run on to others that have no place without them, and
    go elsewhere themselves. Only plans that leave out less are taken.
    """
    tries = _TRIES
    for facts in pools:
        sharing = [other for other in pools if other.pool != facts.pool and shares_nodes(facts, other)]
        for keeps_planned in (True, False):
            if not plans[facts.pool].unplaced or not sharing or not tries:
                break
            first = _with_planned(facts, plans[facts.pool]) if keeps_planned else facts
            tries -= 1
            others = {key: plan for key, plan in plans.items() if key not in {other.pool for other in sharing}}
            others.pop(facts.pool)
            reserving = _in_turn([first], pools, others)
            after = _in_turn(sharing, pools, reserving)
            if _all_unserved(after) < _all_unserved(plans):
                plans = after
    return plans


def _by_rank(pools: Sequence[PoolFacts], plans: dict[str, PoolPlan], others: OtherPools) -> dict[str, PoolPlan]:
    """Return the plans in which what must serve has taken GPUs of other pools from what comes after it, the highest
    rank first.
    """
    plans = _with_preempted(pools, plans, _claims(plans, others))
    tried = set[tuple[str, Rank]]()
    able = [facts for facts in pools if others.preemptible or _shares_with_any(facts, pools)]
    for _ in range(_RANKS if able else 0):
        missing = ((rank, facts.pool) for facts in able for rank in highest_missing(facts, plans[facts.pool]))
        first = min((one for one in missing if (one[1], one[0]) not in tried), default=None)
        if first is None:
            break
        rank, key = first
        tried.add((key, rank))
        plans = _taking(next(facts for facts in pools if facts.pool == key), rank, pools, plans, others)
    return plans


def _taking(
    facts: PoolFacts, rank: Rank, pools: Sequence[PoolFacts], plans: dict[str, PoolPlan], others: OtherPools
) -> dict[str, PoolPlan]:
    """Return the plans in which a pool has claimed GPUs for a rank, and has those that no server runs on."""
    key, plan = facts.pool, plans[facts.pool]
    preemptible = dict(others.preemptible)
    for other in pools:
        if other.pool != key and shares_nodes(facts, other):
            preemptible |= preemptible_gpus(other, plans[other.pool])
    if not preemptible:
        return plans
    claiming = with_claims(_seen(facts, pools, plans), plan, rank, preemptible, _claims(plans, others, but=key))
    new = claiming.claims.keys() - plan.claims.keys()
    if not new:
        return plans
    after = _with_preempted(pools, {**plans, key: claiming}, _claims({**plans, key: claiming}, others))
    if any(device in others.preemptible for device in new):
        return after
    lost = ((one, other) for other in after.values() for one in other.lost if one.other_pool == key)
    taken = tuple(replace(one, other_pool=other.pool) for one, other in lost)
    now = replace(_packed(_seen(facts, pools, after)), gained=taken)
    return {**after, key: now} if _without_hope(now) < _without_hope(plan) else plans


def _without_hope(plan: PoolPlan) -> int:
    """Return how many replicas have no place, and do not wait for one either."""
    return sum(unplaced.reason != Reason.PENDING for unplaced in plan.unplaced)


def _with_preempted(
    pools: Iterable[PoolFacts], plans: Mapping[str, PoolPlan], claims: Mapping[Device, Claim]
) -> dict[str, PoolPlan]:
    """Return the plans of pools that leave GPUs to claims that come before what they have there."""
    after = dict(plans)
    for facts in pools if claims else ():
        after[facts.pool] = without_claimed(_seen(facts, pools, after), after[facts.pool], claims)
    return after


def _claims(plans: Mapping[str, PoolPlan], others: OtherPools, but: str = "") -> dict[Device, Claim]:
    """Return the highest claim on each GPU, those of one pool left out."""
    return highest_claims([others.claims, *(plan.claims for plan in plans.values() if plan.pool != but)])


def _seen(facts: PoolFacts, pools: Iterable[PoolFacts], plans: Mapping[str, PoolPlan]) -> PoolFacts:
    """Return the facts of a pool with the GPUs withheld that others hold or are to hold."""
    return replace(facts, nodes=nodes_left(facts, facts.current, pools, plans))


def _shares_with_any(facts: PoolFacts, pools: Iterable[PoolFacts]) -> bool:
    return any(other.pool != facts.pool and shares_nodes(facts, other) for other in pools)


def shares_nodes(facts: PoolFacts, other: PoolFacts) -> bool:
    """Return whether two pools may use GPUs of one node."""
    return not {node.name for node in facts.nodes if node.gpus}.isdisjoint(node.name for node in other.nodes)


def _with_planned(facts: PoolFacts, plan: PoolPlan) -> PoolFacts:
    """Return the facts of a pool that keeps what it has planned."""
    planned = {server.name for server in plan.servers}
    idle = (server for server in facts.current if server.name not in planned)
    return replace(facts, current=(*plan.current, *idle))


def _all_unserved(plans: Mapping[str, PoolPlan]) -> tuple[int, int]:
    """Return how many groups of all pools have no replica placed, and how many replicas are unplaced."""
    counts = [_unserved(plan) for plan in plans.values()]
    return sum(groups for groups, _ in counts), sum(replicas for _, replicas in counts)


def nodes_left(
    facts: PoolFacts, own: Sequence[CurrentServer], pools: Iterable[PoolFacts], plans: Mapping[str, PoolPlan]
) -> tuple[Node, ...]:
    """Return the pool's nodes, with the GPUs withheld that the other pools hold by now or are to hold."""
    others = {other.pool: holdings(other, plans.get(other.pool)) for other in pools if other.pool != facts.pool}
    preempted = (plan.preempted for plan in plans.values() if plan.pool != facts.pool)
    left = frozenset[Device]().union(*preempted)
    return reserved(facts.nodes, own, others, preempted=left) if any(others.values()) else facts.nodes


def holdings(facts: PoolFacts, plan: PoolPlan | None) -> tuple[CurrentServer, ...]:
    """Return the GPUs that a pool holds. A running server needs those that the plan uses on it."""
    if plan is None:
        return facts.current
    planned = {server.name: server.current for server in plan.servers}
    running = (
        replace(server, placed=planned[server.name].placed) if server.name in planned else server
        for server in facts.current
    )
    return (*planned.values(), *running)


def _packed(facts: PoolFacts) -> PoolPlan:
    """Return the pool's plan; where something fits nowhere, with claims on what other pools do not
    need, if these help.
    """
    plan = pack(facts)
    spare = reclaimable(facts.nodes) if plan.unplaced else {}
    if not spare:
        return plan
    hoped = pack(replace(facts, nodes=tuple(with_free(node, spare) for node in facts.nodes)))
    claims = claims_of(facts, plan, hoped)
    released = claims.keys() & spare.keys()
    if not released or _unserved(hoped) >= _unserved(plan):
        return plan
    holders = {spare[device] for device in released}
    message = waits_for(len(released), holders, "hold and no longer need; they give them up first")
    return replace(plan, claims=claims, unplaced=awaiting(plan, hoped, message))


def _unserved(plan: PoolPlan) -> tuple[int, int]:
    """Return how many groups have no replica placed, and how many replicas are unplaced."""
    served = replica_counts(plan.servers).keys()
    return len({unplaced.group for unplaced in plan.unplaced} - served), len(plan.unplaced)


def _retained(
    facts: PoolFacts, pools: Iterable[PoolFacts], plans: Mapping[str, PoolPlan], claims: Collection[Device]
) -> PoolPlan:
    taken = {device for key, plan in plans.items() if key != facts.pool for device in devices(plan.servers)}
    return retained(plans[facts.pool], _seen(facts, pools, plans), taken, claims)


def _with_withheld(facts: PoolFacts, pools: Iterable[PoolFacts], plans: Mapping[str, PoolPlan]) -> PoolPlan:
    """Return the plan with the other holders of GPUs of the pool's nodes, once every pool is planned."""
    plan = plans[facts.pool]
    ready = tuple(node for node in nodes_left(facts, plan.current, pools, plans) if node.ready)
    return replace(plan, withheld=withheld(ready), unplaced=(*plan.unplaced, *_waiting(facts)))


def _waiting(facts: PoolFacts) -> Iterator[Unplaced]:
    """Yield the replicas that are not to be placed yet; a suspended pool lacks nothing."""
    for model in () if facts.suspended else facts.waiting:
        yield from [Unplaced(model.model, (model.model,), model.reason, model.message)] * model.replicas

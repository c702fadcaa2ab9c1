"""Several pools, one set of nodes: no GPU goes to two of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from argosy.api import Reason
from argosy.planning.amounts import quantity
from argosy.planning.facts import CurrentServer, Device, Node, PoolFacts
from argosy.planning.nodes.reservations import devices, reclaimable, reserved, retained, withheld
from argosy.planning.packing.solve import pack
from argosy.planning.plan import FleetPlan, PoolPlan, Unplaced, replica_counts

_TRIES = 8
"""The most times that pools are planned again for one that has replicas without a place."""


def pack_fleet(pools: Sequence[PoolFacts], claimed: Iterable[Device] = ()) -> FleetPlan:
    """Return every pool's plan, in the order of their keys, with what running servers keep.

    A pool leaves alone what earlier ones take and what others hold. Where it finds no place then, it comes before those
    that could go elsewhere. For what fits nowhere else it claims GPUs that
    other pools' servers hold without need: these give them up, and a later plan takes them. `claimed` are the claims of
    pools that are not among these.
    """
    ordered = sorted(pools, key=lambda facts: facts.pool)
    plans = _with_others_moved(ordered, _in_turn(ordered, ordered, {}))
    claims = {*claimed, *(device for plan in plans.values() for device in plan.claims)}
    for facts in ordered:
        plans[facts.pool] = _retained(facts, ordered, plans, claims)
    return FleetPlan(tuple(_with_claims(facts, ordered, plans) for facts in ordered))


def _in_turn(
    turn: Iterable[PoolFacts], pools: Sequence[PoolFacts], plans: Mapping[str, PoolPlan]
) -> dict[str, PoolPlan]:
    """Return the plans with those of some pools in addition, each of which leaves alone what is planned before it."""
    after = dict(plans)
    for facts in turn:
        after[facts.pool] = _packed(replace(facts, nodes=nodes_left(facts, facts.current, pools, after)))
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
            if _total_lack(after) < _total_lack(plans):
                plans = after
    return plans


def shares_nodes(facts: PoolFacts, other: PoolFacts) -> bool:
    """Return whether two pools may use GPUs of one node."""
    return not {node.name for node in facts.nodes if node.gpus}.isdisjoint(node.name for node in other.nodes)


def _with_planned(facts: PoolFacts, plan: PoolPlan) -> PoolFacts:
    """Return the facts of a pool that keeps what it has planned."""
    planned = {server.name for server in plan.servers}
    idle = (server for server in facts.current if server.name not in planned)
    return replace(facts, current=(*plan.current, *idle))


def _total_lack(plans: Mapping[str, PoolPlan]) -> tuple[int, int]:
    """Return how many groups of all pools have no replica placed, and how many replicas are unplaced."""
    lacks = [_lack(plan) for plan in plans.values()]
    return sum(groups for groups, _ in lacks), sum(replicas for _, replicas in lacks)


def nodes_left(
    facts: PoolFacts, own: Sequence[CurrentServer], pools: Iterable[PoolFacts], plans: Mapping[str, PoolPlan]
) -> tuple[Node, ...]:
    """Return the pool's nodes, with the GPUs withheld that the other pools hold by now or are to hold."""
    others = {other.pool: holdings(other, plans.get(other.pool)) for other in pools if other.pool != facts.pool}
    return reserved(facts.nodes, own, others) if any(others.values()) else facts.nodes


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
    hoped = pack(replace(facts, nodes=tuple(_with_reclaimed(node) for node in facts.nodes)))
    claims = frozenset(devices(hoped.servers) & spare.keys())
    if not claims or _lack(hoped) >= _lack(plan):
        return plan
    return replace(plan, claims=claims, unplaced=_awaiting(plan, hoped, {device: spare[device] for device in claims}))


def _with_reclaimed(node: Node) -> Node:
    """Return the node as if what others do not need were free."""
    return replace(node, gpus=tuple(replace(gpu, withheld_by="") if gpu.reclaimable else gpu for gpu in node.gpus))


def _lack(plan: PoolPlan) -> tuple[int, int]:
    """Return how many groups have no replica placed, and how many replicas are unplaced."""
    served = replica_counts(plan.servers).keys()
    return len({unplaced.group for unplaced in plan.unplaced} - served), len(plan.unplaced)


def _awaiting(plan: PoolPlan, hoped: PoolPlan, claims: Mapping[Device, str]) -> tuple[Unplaced, ...]:
    """Return what is unplaced; a replica that only waits for the claimed GPUs says so."""
    still = Counter(unplaced.group for unplaced in hoped.unplaced)
    waiting = Counter(unplaced.group for unplaced in plan.unplaced) - still
    holders = ", ".join(sorted(set(claims.values()))[:3])
    message = (
        f"it waits for {quantity(len(claims), 'GPU')} that servers of {holders} hold and no longer need; "
        "they give them up first"
    )
    unplaced_left = []
    for unplaced in plan.unplaced:
        waits = waiting[unplaced.group] > 0
        waiting[unplaced.group] -= waits
        unplaced_left.append(replace(unplaced, reason=Reason.PENDING, message=message) if waits else unplaced)
    return tuple(unplaced_left)


def _retained(
    facts: PoolFacts, pools: Iterable[PoolFacts], plans: Mapping[str, PoolPlan], claims: Collection[Device]
) -> PoolPlan:
    taken = {device for key, plan in plans.items() if key != facts.pool for device in devices(plan.servers)}
    nodes = nodes_left(facts, facts.current, pools, plans)
    return retained(plans[facts.pool], replace(facts, nodes=nodes), taken, claims)


def _with_claims(facts: PoolFacts, pools: Iterable[PoolFacts], plans: Mapping[str, PoolPlan]) -> PoolPlan:
    """Return the plan with the other holders of GPUs of the pool's nodes, once every pool is planned."""
    plan = plans[facts.pool]
    ready = tuple(node for node in nodes_left(facts, plan.current, pools, plans) if node.ready)
    return replace(plan, withheld=withheld(ready), unplaced=(*plan.unplaced, *_waiting(facts)))


def _waiting(facts: PoolFacts) -> Iterator[Unplaced]:
    """Yield the replicas that are not to be placed yet; a suspended pool lacks nothing."""
    for model in () if facts.suspended else facts.waiting:
        yield from [Unplaced(model.model, (model.model,), model.reason, model.message)] * model.replicas

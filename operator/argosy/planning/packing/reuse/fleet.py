"""The pools of a fleet, of which those that differ little from the last plan are planned next to what they keep."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Device, PoolFacts
from argosy.planning.nodes.reservations import devices, withheld
from argosy.planning.packing.pools import holdings, nodes_left, shares_nodes
from argosy.planning.packing.reuse.replan import replanned
from argosy.planning.plan import FleetPlan, PoolPlan

Facts = Mapping[PoolKey, PoolFacts]
Plans = Mapping[str, PoolPlan]


def replanned_fleet(last: Facts, before: FleetPlan, facts: Facts, lacking: Collection[PoolKey]) -> FleetPlan | None:
    """Return the plan of these facts, of which the last ones had the plan `before`; None where all is to be planned.

    `lacking`: pools with replicas that have no place. No pool claims GPUs of others.
    """
    plans: dict[str, PoolPlan] = {plan.pool: plan for plan in before.pools}
    if not (last.keys() == facts.keys() == plans.keys()):
        return None
    for key in sorted(key for key in facts if facts[key] != last[key]):
        sharing = [other for other in facts.values() if other.pool != key and shares_nodes(facts[key], other)]
        if not {key, *(other.pool for other in sharing)}.isdisjoint(lacking):
            return None
        plan = _of_pool(key, last, plans, facts, sharing)
        if plan is None:
            return None
        plans[key] = plan
    return FleetPlan(tuple(plans[key] for key in sorted(plans)))


def _of_pool(key: PoolKey, last: Facts, plans: Plans, facts: Facts, sharing: Sequence[PoolFacts]) -> PoolPlan | None:
    """Return the plan of one pool; None where those that it shares nodes with may have to be planned again, too."""
    own, pools = facts[key], tuple(facts.values())
    if not sharing:
        return replanned(last[key], plans[key], own, ())
    earlier = {pool: plan for pool, plan in plans.items() if pool < key}
    seen = replace(own, nodes=nodes_left(own, own.current, pools, earlier))
    as_last = replace(last[key], nodes=nodes_left(last[key], last[key].current, pools, earlier))
    taken = devices(server for other in sharing for server in plans[other.pool].servers)
    plan = replanned(as_last, plans[key], seen, taken)
    if plan is None or not _holds_the_same(last[key], plans[key], own, plan):
        return None
    ready = (node for node in nodes_left(own, plan.current, pools, {**plans, key: plan}) if node.ready)
    return replace(plan, withheld=withheld(ready))


def _holds_the_same(last: PoolFacts, before: PoolPlan, facts: PoolFacts, plan: PoolPlan) -> bool:
    """Return whether a pool leaves others the GPUs that it left them before."""
    return _held(holdings(last, before)) == _held(holdings(facts, plan)) and _held(last.current) == _held(facts.current)


def _held(servers: Sequence[CurrentServer]) -> set[tuple[Device, bool]]:
    """Return the GPUs of servers, and whether these need them."""
    return {((server.node, gpu), gpu in server.needed) for server in servers for gpu in server.gpus}

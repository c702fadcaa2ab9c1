"""The placeholders of all pools of a round, and what they say of the replicas that wait for nodes."""

from collections.abc import Mapping
from dataclasses import replace

from argosy.api.values.identity import PoolKey
from argosy.planning.amounts import listed, quantity
from argosy.planning.facts import PoolFacts
from argosy.planning.nodes.slices import GPU_RESOURCE
from argosy.planning.packing.priorities import RankedPlan
from argosy.planning.plan import FleetPlan, PoolPlan
from argosy.planning.provisioning.exclusions import MOST_NAMED
from argosy.planning.provisioning.placeholders import Placeholder, Provisioning, provision


def provision_fleet(
    ranked: RankedPlan, facts: Mapping[PoolKey, PoolFacts], most: Mapping[PoolKey, int]
) -> dict[PoolKey, Provisioning]:
    """Return the placeholders of each pool, at most as many Pods as `most` says. `facts` have all desired replicas."""
    optional = {
        plan.pool: [name for pool, name in ranked.shortfalls if pool == plan.pool] for plan in ranked.plan.pools
    }
    return {
        plan.pool: provision(
            facts[plan.pool],
            plan,
            [*(unplaced.group for unplaced in plan.unplaced), *optional[plan.pool]],
            most.get(plan.pool, 0),
        )
        for plan in ranked.plan.pools
    }


def with_waits(ranked: RankedPlan, provisioned: Mapping[PoolKey, Provisioning]) -> RankedPlan:
    """Return the plan, in which the messages of what has no place name the placeholders that ask for a node."""
    waits = {
        (pool, name): wait
        for pool, of_pool in provisioned.items()
        for names, wait in ((of_pool.beyond, _BEYOND), (of_pool.unnamed, _UNNAMED))
        for name in names
    } | {
        (pool, name): _wait(placeholder)
        for pool, of_pool in provisioned.items()
        for placeholder in of_pool.placeholders
        for name in placeholder.groups
    }
    if not waits:
        return ranked
    pools = tuple(_with_waits(plan, waits) for plan in ranked.plan.pools)
    shortfalls = {
        key: replace(shortfall, message=_joined(shortfall.message, waits.get(key, "")))
        for key, shortfall in ranked.shortfalls.items()
    }
    return replace(ranked, plan=FleetPlan(pools), shortfalls=shortfalls)


_BEYOND = "It has no placeholder, since the pool may have no more: raise its nodeAutoscaling.maxPlaceholders."
_UNNAMED = (
    f"It has no placeholder, since more than {MOST_NAMED} nodes have GPUs free and no place for it, and one of them "
    "could take the placeholder: add a node yourself, or relax what keeps it away from them."
)


def _with_waits(plan: PoolPlan, waits: Mapping[tuple[PoolKey, str], str]) -> PoolPlan:
    unplaced = tuple(
        replace(one, message=_joined(one.message, waits.get((plan.pool, one.group), ""))) for one in plan.unplaced
    )
    return replace(plan, unplaced=unplaced)


def _wait(placeholder: Placeholder) -> str:
    sliced = placeholder.resource != GPU_RESOURCE
    gpus = quantity(placeholder.gpus, placeholder.resource if sliced else "GPU")
    of = f" of {listed(placeholder.products, separator=' or ')}" if placeholder.products else ""
    return f"It waits for a node: placeholder {placeholder.name} asks for {gpus}{of}."


def _joined(message: str, wait: str) -> str:
    return f"{message.rstrip('.')}. {wait}" if wait else message

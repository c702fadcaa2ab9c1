"""Several pools, one set of nodes: no GPU goes to two of them."""

from collections.abc import Sequence
from dataclasses import replace

from argosy.fleet.facts import Node, PoolFacts
from argosy.fleet.packing.solve import pack
from argosy.fleet.plan import FleetPlan, PoolPlan

_Devices = frozenset[tuple[str, int]]


def pack_fleet(pools: Sequence[PoolFacts]) -> FleetPlan:
    """Every pool's plan, in the order of their keys. A pool leaves alone what earlier ones take and what others
    hold.
    """
    plans: list[PoolPlan] = []
    ordered = sorted(pools, key=lambda facts: facts.pool)
    for facts in ordered:
        taken = {(s.node, gpu) for plan in plans for s in plan.servers for gpu in s.gpus}
        held = {(s.node, gpu) for other in ordered if other is not facts for s in other.current for gpu in s.gpus}
        own = {(s.node, gpu) for s in facts.current for gpu in s.gpus}
        withheld = frozenset(taken | (held - own))
        plans.append(pack(replace(facts, nodes=tuple(_without(node, withheld) for node in facts.nodes))))
    return FleetPlan(tuple(plans))


def _without(node: Node, withheld: _Devices) -> Node:
    left = tuple(gpu for gpu in node.gpus if gpu.is_cpu or (node.name, gpu.index) not in withheld)
    return node if len(left) == len(node.gpus) else replace(node, gpus=left)

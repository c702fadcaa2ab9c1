"""Rearrangement: what moves for a replica without a place is the lightest that is enough."""

from dataclasses import replace

from tests.operator.planning.declared import GIB, gpu_node, lone

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Footprint, Group, PoolFacts
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan

POOL = PoolKey("default/p")
SMALL = {f"s{n}": 1 for n in range(8)}
"""Models that make the pool too large for being searched whole."""


def group(name: str, memory: int) -> Group:
    return lone(name, Footprint(memory * GIB))


def moved(sizes: dict[str, int], new: int) -> list[str]:
    """Return what moves from a full GPU to one with 40 GiB when a model of so many GiB comes."""
    placed = dict.fromkeys(sizes, (0,))
    current = (CurrentServer("p-0", "a", (0,), placed), CurrentServer("p-1", "b", (0,), {"other": (0,)}))
    groups = [group(name, memory) for name, memory in sizes.items()] + [group("other", 40)]
    nodes = (gpu_node("a", memory=100), gpu_node("b", memory=80))
    facts = PoolFacts(POOL, nodes, tuple(groups), headroom=0, current=current)
    plan = pack(replace(facts, groups=(*facts.groups, group("new", new))))
    assert plan.unplaced == ()
    return sorted(_on(plan, "p-1") - {"other"})


def _on(plan: PoolPlan, server: str) -> set[str]:
    return {placement.model for one in plan.servers if one.name == server for placement in one.placements}


def test_the_lightest_that_is_enough_moves() -> None:
    assert moved({"light": 38, "heavy": 39, **SMALL}, 41) == ["light"]
    assert moved({"heavy": 38, "light": 37, **SMALL}, 41) == ["light"]


def test_what_would_not_be_enough_stays() -> None:
    assert moved({"light": 20, "mid": 24, "heavy": 36, **SMALL}, 41) == ["heavy"]

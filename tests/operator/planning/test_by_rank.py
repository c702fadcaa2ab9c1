"""Placing by rank: lower ranks take no place that a higher one would have without them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, gpu_node, lone
from tests.properties import examples

from argosy.api.pool.packing import Preemption
from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Demand, Footprint, Group, PoolFacts
from argosy.planning.packing.eviction.by_rank import fill_by_rank
from argosy.planning.packing.eviction.settling import Settled, settle
from argosy.planning.packing.filling.searched import fill
from argosy.planning.packing.layout import Layout, Replica, Topology
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan

POOL = PoolKey("default/p")
SIZES = [10, 20, 30, 45, 60]


def fleet(seed: int, preemption: Preemption, models: int = 26, nodes: int = 3) -> PoolFacts:
    """Return a pool that is too small for its models, of three priorities."""
    random = Random(seed)
    groups = tuple(
        Group(
            f"s{n:02}",
            (
                Demand(
                    f"s{n:02}", 1, Footprint(random.choice([10, 20, 30, 45, 60]) * GIB, random.choice([50, 200, 400]))
                ),
            ),
            random.choice([1, 2]),
            None,
            random.choice([0, 0, 5, 10]),
        )
        for n in range(models)
    )
    every = tuple(gpu_node(f"n{n}", 4, 80) for n in range(nodes))
    return PoolFacts(POOL, every, groups, headroom=200, preemption=preemption)


def lack(facts: PoolFacts, plan: PoolPlan, priority: int) -> list[tuple[int, int]]:
    """Return the unplaced required replicas from a priority on: the highest priorities first, with their number."""
    placed = Counter(group for server in plan.servers for group in {one.group for one in server.placements})
    lacking = Counter[int]()
    for group in facts.groups:
        if group.priority >= priority and placed[group.name] < group.needed:
            lacking[group.priority] += group.needed - placed[group.name]
    return sorted(lacking.items(), reverse=True)


@pytest.mark.parametrize("preemption", Preemption)
@pytest.mark.parametrize("seed", range(5))
def test_lower_priorities_take_nothing_from_higher_ones(preemption: Preemption, seed: int) -> None:
    """Compare given fleets: the search proves nothing, and one in fifty differs by a replica of the second rank."""
    facts = fleet(seed, preemption)
    plan = pack(facts)
    for priority in (10, 5):
        alone = replace(facts, groups=tuple(group for group in facts.groups if group.priority >= priority))
        assert lack(facts, plan, priority) <= lack(alone, pack(alone), priority)


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
@examples(2)
def test_the_order_of_the_facts_does_not_matter(seed: int, random: Random) -> None:
    facts = fleet(seed, Preemption.LOWER_PRIORITY)
    groups = list(facts.groups)
    random.shuffle(groups)
    assert pack(replace(facts, groups=tuple(groups))).servers == pack(facts).servers


def test_what_fits_without_the_lower_ones_is_placed_before_them() -> None:
    sizes = (("a", 50, 5), ("b", 50, 5), ("c", 25, 5), ("d", 25, 5), ("low", 30, 0), ("less", 30, 0), ("wide", 72, 0))
    groups = tuple(Group(name, (Demand(name, 1, Footprint(size * GIB)),), 1, None, rank) for name, size, rank in sizes)
    plan = pack(PoolFacts(POOL, (gpu_node("n", 2, 80),), groups, headroom=0))
    assert {one.group for one in plan.unplaced} == {"low", "less", "wide"}


@given(seed=st.integers(0, 10_000), preemption=st.sampled_from(list(Preemption)))
@example(seed=59, preemption=Preemption.NEVER)
@examples(8)
def test_every_replica_is_placed_or_explained(seed: int, preemption: Preemption) -> None:
    facts = fleet(seed, preemption, 20, 2)
    groups = tuple(
        replace(group, minimum=group.replicas - (n % 3 == 0 and group.replicas > 1))
        for n, group in enumerate(facts.groups)
    )
    first = sorted(groups, key=lambda group: group.priority)[:10]
    before = pack(replace(facts, groups=tuple(first)))
    plan = pack(replace(facts, groups=groups, current=before.current))
    counts = Counter(group for server in plan.servers for group in {one.group for one in server.placements})
    counts.update(one.group for one in plan.unplaced)
    assert counts == {group.name: group.replicas for group in groups}


def test_many_ranks_are_not_all_placed_again_with_those_before_them() -> None:
    """Sixty ranks of a model each, of which a third has no place: each placing is a search of its own."""
    groups = tuple(replace(lone(f"m{n:02}", Footprint(30 * GIB)), priority=n) for n in range(60))
    facts = PoolFacts(POOL, tuple(gpu_node(f"n{n}", 4, 80) for n in range(5)), groups, headroom=0)
    placings: list[int] = []

    def fill_some(start: Layout, todo: Sequence[Replica]) -> Settled:
        placings.append(len(todo))
        return settle(*fill(start, todo), ())

    settled = fill_by_rank(Layout.empty(Topology.of(facts)), fill_some)
    assert len(settled.unschedulable) == 20
    assert {replica.group.priority for replica in settled.unschedulable} == set(range(20))
    assert len(placings) <= 1 + 60 + 16

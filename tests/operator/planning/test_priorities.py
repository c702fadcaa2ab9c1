"""The plan of a round that nothing changed for is the last one; a change of any input makes another."""

from dataclasses import replace

from hypothesis import given
from tests.operator.planning.test_packing_properties import pools
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.packing.priorities import pack_by_priority

GIB = 1 << 30


def fleet(memory: int = 10) -> PoolFacts:
    group = Group("g", (Demand("m", 1, Footprint(memory * GIB)),))
    return PoolFacts(PoolKey("default/p"), (Node("a", (Gpu(0, 80 * GIB),)),), (group,))


def test_equal_inputs_have_the_last_plan() -> None:
    last = pack_by_priority([fleet()], {("a", 1)})
    assert pack_by_priority([fleet()], {("a", 1)}, last) is last


def test_other_facts_or_claims_have_a_plan_of_their_own() -> None:
    last = pack_by_priority([fleet()])
    assert pack_by_priority([fleet(memory=70)], (), last).plan != last.plan
    assert pack_by_priority([fleet()], {("a", 0)}, last) is not last


@given(pools(), pools())
@examples(40)
def test_a_plan_is_the_same_with_and_without_a_last_one(before: PoolFacts, after: PoolFacts) -> None:
    """The fleet runs, is as it was, and changes."""
    last = pack_by_priority([before])
    running = replace(before, current=last.plan.pools[0].current)
    for facts in (running, replace(running), replace(running, groups=after.groups), after):
        result = pack_by_priority([facts], (), last)
        assert result == pack_by_priority([facts])
        last = result

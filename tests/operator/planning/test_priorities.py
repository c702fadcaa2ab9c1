"""The plan of a round that nothing changed for is the last one; a change of any input makes another."""

from dataclasses import replace

from hypothesis import given
from tests.operator.planning.test_packing_properties import pools
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Claim, Demand, Footprint, Gpu, Group, Node, OtherPools, PoolFacts, PreemptibleGpu
from argosy.planning.packing.priorities import pack_by_priority

GIB = 1 << 30
CLAIMED = OtherPools({("a", 1): Claim(PoolKey("default/q"), "y", (False, 0))})


def fleet(memory: int = 10) -> PoolFacts:
    group = Group("g", (Demand("m", 1, Footprint(memory * GIB)),))
    return PoolFacts(PoolKey("default/p"), (Node("a", (Gpu(0, 80 * GIB),)),), (group,))


def test_equal_inputs_have_the_last_plan() -> None:
    last = pack_by_priority([fleet()], CLAIMED)
    assert pack_by_priority([fleet()], OtherPools(dict(CLAIMED.claims)), last) is last


def test_other_facts_or_claims_have_a_plan_of_their_own() -> None:
    last = pack_by_priority([fleet()])
    assert pack_by_priority([fleet(memory=70)], last=last).plan != last.plan
    assert pack_by_priority([fleet()], CLAIMED, last) is not last


def test_what_others_would_give_up_matters_only_to_a_plan_that_lacks_something() -> None:
    lost = PreemptibleGpu(PoolKey("default/q"), "q-0", (((True, 0), "y"),), GIB)
    last, others = pack_by_priority([fleet()]), OtherPools(preemptible={("a", 0): lost})
    assert pack_by_priority([fleet()], others, last) is last
    held = replace(fleet(), nodes=(Node("a", (Gpu(0, 80 * GIB, withheld_by="ServingPool default/q"),)),))
    last = pack_by_priority([held])
    assert pack_by_priority([held], others, last).plan.pools[0].claims


@given(pools(), pools())
@examples(40)
def test_a_plan_is_the_same_with_and_without_a_last_one(before: PoolFacts, after: PoolFacts) -> None:
    """The fleet runs, is as it was, and changes."""
    last = pack_by_priority([before])
    running = replace(before, current=last.plan.pools[0].current)
    for facts in (running, replace(running), replace(running, groups=after.groups), after):
        result = pack_by_priority([facts], last=last)
        assert result == pack_by_priority([facts])
        last = result

"""A last plan that is used again: the same plan as from the facts alone, whatever changed, and little work."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.operator.planning.declared import linked_node, lone
from tests.operator.planning.plan_rules import broken_rules
from tests.operator.planning.random_rounds import Rounds

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Footprint, PoolFacts
from argosy.planning.packing import priorities
from argosy.planning.packing.nearby import candidates, fill
from argosy.planning.packing.pools import nodes_left
from argosy.planning.packing.priorities import RankedPlan, pack_by_priority
from argosy.planning.packing.reuse.difference import changed_groups
from argosy.planning.packing.solve import pack

GIB = 1 << 30
_DENSITY = (0.15, 0.25, 0.4)
"""Groups for each GPU: pools with space, and pools without."""


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parts be so small that pools of a few nodes have them."""
    monkeypatch.setattr(candidates, "_JOINED", 1)
    monkeypatch.setattr(candidates, "_OPENED", 1)
    monkeypatch.setattr(fill, "_LEAST", 1)


_A_CANDIDATE_ON_ONE_OF_TWO_SERVERS = 1084, 0.2, 7


@pytest.mark.parametrize(
    ("seed", "density", "steps"),
    [*((seed, _DENSITY[seed % 3], 6) for seed in range(9)), _A_CANDIDATE_ON_ONE_OF_TWO_SERVERS],
)
def test_a_plan_does_not_depend_on_the_last_one(seed: int, density: float, steps: int) -> None:
    rounds, last = Rounds(seed, density), None
    for _ in range(steps):
        plan = pack_by_priority(rounds.facts)
        again = pack_by_priority(rounds.facts, last=last)
        assert (again.plan, again.shortfalls) == (plan.plan, plan.shortfalls)
        assert pack_by_priority(rounds.shuffled(), last=last).plan == plan.plan
        last = again
        rounds.step(plan.plan)


@pytest.mark.parametrize("seed", range(100, 106))
def test_a_plan_with_all_placed_obeys_every_rule_and_stays_once_it_is_carried_out(seed: int) -> None:
    rounds, last = Rounds(seed, _DENSITY[seed % 2]), None
    for _ in range(6):
        ranked = last = pack_by_priority(rounds.facts, last=last)
        plans = {plan.pool: plan for plan in ranked.plan.pools}
        for facts in rounds.facts:
            others = nodes_left(facts, plans[facts.pool].current, rounds.facts, plans)
            assert not broken_rules(replace(facts, nodes=others), plans[facts.pool])
        after = [replace(facts, current=plans[facts.pool].current) for facts in rounds.facts]
        if not any(plan.unplaced or plan.lost for plan in ranked.plan.pools) and not ranked.shortfalls:
            assert _seats(pack_by_priority(after, last=ranked)) == _seats(ranked)
            assert _seats(pack_by_priority(after)) == _seats(ranked)
        rounds.step(ranked.plan)


def _seats(ranked: RankedPlan) -> list[tuple[object, ...]]:
    return [
        (server.name, one.model, one.gpus)
        for pool in ranked.plan.pools
        for server in pool.servers
        for one in server.placements
    ]


def large(groups: int = 120) -> PoolFacts:
    """Return a pool of which every GPU has a model of 30 GiB and one of 20 to 40 GiB, of 80 GiB."""
    nodes = tuple(linked_node(f"n{at:03}", 2) for at in range(groups))
    models = tuple(lone(f"m{at:03}", Footprint((20 + at % 20 if at % 2 else 30) * GIB)) for at in range(groups))
    return PoolFacts(PoolKey("default/p"), nodes, models, headroom=0)


def running(facts: PoolFacts) -> tuple[RankedPlan, PoolFacts]:
    """Return the plan of a pool that runs, with its facts."""
    after = replace(facts, current=pack(facts).current)
    return pack_by_priority([after]), after


def changed(facts: PoolFacts, group: str, footprint: Footprint) -> PoolFacts:
    """Return the facts in which a group has another footprint."""
    groups = (one.with_footprints(lambda _: footprint) if one.name == group else one for one in facts.groups)
    return replace(facts, groups=tuple(groups))


def _changes(facts: PoolFacts) -> Iterator[PoolFacts]:
    yield changed(facts, "m007", Footprint(5 * GIB))
    yield changed(facts, "m007", Footprint(79 * GIB))
    yield changed(facts, "m007", Footprint(GIB, gpus=2))
    yield replace(facts, groups=facts.groups[1:])
    yield replace(facts, groups=(*facts.groups, lone("new", Footprint(60 * GIB), 2)))


def test_one_changed_group_leaves_all_other_servers_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    last, facts = running(large())
    plans = [pack_by_priority([after]).plan for after in _changes(facts)]
    monkeypatch.setattr(priorities, "pack_fleet", None)
    for after, plan in zip(_changes(facts), plans, strict=True):
        ranked = pack_by_priority([after], last=last)
        assert ranked.plan == plan
        before = {id(server) for server in last.plan.pools[0].servers}
        assert sum(id(server) not in before for server in ranked.plan.pools[0].servers) <= 2


def test_rounds_after_a_change_need_no_plan_of_all_either(monkeypatch: pytest.MonkeyPatch) -> None:
    last, facts = running(large())
    last = pack_by_priority([changed(facts, "m007", Footprint(79 * GIB))], last=last)
    facts = replace(last.facts[0], current=last.plan.pools[0].current)
    plan = pack_by_priority([facts]).plan
    monkeypatch.setattr(priorities, "pack_fleet", None)
    assert pack_by_priority([facts], last=last).plan == plan
    last = pack_by_priority([changed(facts, "m008", Footprint(78 * GIB))], last=last)
    assert not last.plan.pools[0].unplaced


def test_a_group_differs_where_its_server_is_not_as_planned() -> None:
    last, facts = running(large(8))
    plan = last.plan.pools[0]
    assert changed_groups(facts, plan, facts) == frozenset()
    gone = replace(facts, current=facts.current[1:])
    assert changed_groups(facts, plan, gone) == plan.servers[0].groups
    former = CurrentServer("p-99", "n000", (1,), {"m003": (1,)})
    assert changed_groups(facts, plan, replace(facts, current=(*facts.current, former))) == {"m003"}
    assert changed_groups(facts, plan, replace(facts, headroom=100)) is None
    assert changed_groups(facts, plan, replace(facts, nodes=facts.nodes[::-1])) == frozenset()


def test_a_group_that_asks_for_more_than_there_is_is_planned_with_all() -> None:
    last, facts = running(large(8))
    after = replace(facts, groups=(*facts.groups, *(lone(f"n{at}", Footprint(79 * GIB)) for at in range(17))))
    assert pack_by_priority([after], last=last).plan == pack_by_priority([after]).plan
    assert pack_by_priority([after], last=last).plan.pools[0].unplaced

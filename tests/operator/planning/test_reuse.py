"""A last plan that is used again: the same plan as from the facts alone, whatever changed, and little work."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning.declared import gpu_node, linked_node, lone
from tests.operator.planning.plan_rules import broken_rules
from tests.operator.planning.random_rounds import Rounds

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Footprint, Group, PoolFacts
from argosy.planning.packing import priorities
from argosy.planning.packing.nearby import fill, part
from argosy.planning.packing.pools import nodes_left
from argosy.planning.packing.priorities import RankedPlan, pack_by_priority
from argosy.planning.packing.reuse.difference import changed_groups
from argosy.planning.packing.solve import pack
from argosy.planning.requirements import NodeRequirements

GIB = 1 << 30
_DENSITY = (0.15, 0.25, 0.4)
"""Groups for each GPU: pools with space, and pools without."""


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parts be so small that pools of a few nodes have them."""
    monkeypatch.setattr(part, "_JOINED", 1)
    monkeypatch.setattr(part, "_OPENED", 1)
    monkeypatch.setattr(fill, "_LEAST", 1)


_A_CANDIDATE_ON_ONE_OF_TWO_SERVERS = 1084, 0.2, 7


@pytest.mark.parametrize(
    ("seed", "density", "steps"),
    [*((seed, _DENSITY[seed % 3], 6) for seed in range(5)), _A_CANDIDATE_ON_ONE_OF_TWO_SERVERS],
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


@pytest.mark.parametrize("seed", range(100, 104))
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
    # A part of one node has one empty GPU where the number of those in use is odd, and two replicas come.
    monkeypatch.setattr(part, "_OPENED", 2)
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


def small(*groups: Group, **others: Any) -> PoolFacts:
    """Return a pool of a few nodes with a GPU each."""
    nodes = tuple(gpu_node(f"n{at}") for at in range(3))
    return PoolFacts(PoolKey("default/p"), others.pop("nodes", nodes), groups, headroom=0, **others)


def assert_planned_alike(last: RankedPlan, *facts: PoolFacts) -> RankedPlan:
    """Return the plan of these facts, which is the same with a last plan as without."""
    ranked = pack_by_priority(facts)
    assert pack_by_priority(facts, last=last).plan == ranked.plan
    return ranked


def test_a_pool_that_takes_a_further_gpu_is_planned_with_those_that_share_its_node() -> None:
    """The plan of each pool says which GPUs the others have."""
    first = small(lone("a", Footprint(40 * GIB)), nodes=(gpu_node("n", 4),))
    second = replace(small(lone("b", Footprint(40 * GIB))), pool=PoolKey("default/q"), nodes=first.nodes)
    started = pack_by_priority([first, second]).plan.pools
    first, second = (replace(one, current=plan.current) for one, plan in zip((first, second), started, strict=True))
    last = pack_by_priority([first, second])
    after = replace(second, groups=(*second.groups, lone("c", Footprint(60 * GIB))))
    withheld = assert_planned_alike(last, first, after).plan.pools[0].withheld
    assert withheld != last.plan.pools[0].withheld


@pytest.mark.parametrize("left", ["node", "gpu"])
def test_what_waits_to_leave_a_node_or_gpu_does_so_once_another_group_is_gone(left: str) -> None:
    _, facts = running(small(*(lone(f"m{at}", Footprint(60 * GIB)) for at in range(3))))
    *others, node = facts.nodes
    lost = replace(node, lost=True, schedulable=False)
    leaving = replace(node, gpus=tuple(replace(gpu, leaving=True) for gpu in node.gpus))
    facts = replace(facts, nodes=(*others, lost if left == "node" else leaving))
    last = pack_by_priority([facts])
    assert "n2" in {server.node for server in last.plan.pools[0].servers}
    plan = assert_planned_alike(last, replace(facts, groups=facts.groups[1:])).plan
    assert "n2" not in {server.node for server in plan.pools[0].servers}


def test_a_misplaced_replica_moves_once_a_node_that_it_requires_is_free() -> None:
    requires = NodeRequirements(labels=(("disk", "ssd"),))
    nodes = tuple(gpu_node(f"n{at}", labels={"disk": disk}) for at, disk in enumerate(("ssd", "ssd", "hdd")))
    _, facts = running(small(*(lone(f"m{at}", Footprint(60 * GIB)) for at in range(3)), nodes=nodes))
    required = tuple(replace(group, demands=(replace(group.demands[0], requires=requires),)) for group in facts.groups)
    last = pack_by_priority([replace(facts, groups=required)])
    assert [one.misplaced for server in last.plan.pools[0].servers for one in server.placements].count(True) == 1
    plan = assert_planned_alike(last, replace(facts, groups=required[1:])).plan
    assert not any(one.misplaced for server in plan.pools[0].servers for one in server.placements)


def test_a_group_whose_documents_no_longer_fit_may_stay_while_its_neighbour_moves() -> None:
    needs = {"a": 30, "b": 20, "c": 40}
    sizes = {"a": 10, "b": 50, "c": 10}
    groups = tuple(replace(lone(name, Footprint(need * GIB)), size=sizes[name]) for name, need in needs.items())
    current = (CurrentServer("p-0", "n0", (0,), {"a": (0,), "b": (0,)}), CurrentServer("p-1", "n1", (0,), {"c": (0,)}))
    last, facts = running(small(*groups, placed_bytes=95, staying_bytes=100, current=current))
    assert [server.groups for server in last.plan.pools[0].servers] == [{"a", "b"}, {"c"}]
    plan = assert_planned_alike(last, replace(facts, groups=(replace(groups[0], size=60), *groups[1:]))).plan
    assert [server.groups for server in plan.pools[0].servers] == [{"a"}, {"b", "c"}]


def test_a_model_without_a_measurement_keeps_what_it_was_placed_with_next_to_a_changed_group() -> None:
    groups = lone("a", Footprint(60 * GIB)), lone("b", Footprint(60 * GIB))
    _, facts = running(small(*groups, nodes=(gpu_node("n", 2),)))
    facts = changed(facts, "a", Footprint(gpus=1, assumed=True))
    last = pack_by_priority([facts])
    plan = assert_planned_alike(last, changed(facts, "b", Footprint(50 * GIB))).plan.pools[0]
    assert [one.memory for server in plan.servers for one in server.placements] == [60 * GIB, 50 * GIB]

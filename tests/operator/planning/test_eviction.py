"""Eviction: what comes first takes the places of what comes last, as few as possible, where the pool allows it."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB, gpu_node, linked_node
from tests.operator.planning.plan_rules import broken_rules
from tests.properties import examples

from argosy.api.pool.packing import Preemption
from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan

POOL = PoolKey("default/p")
LOWER = Preemption.LOWER_PRIORITY


def one(
    name: str, priority: int = 0, memory: int = 60, replicas: int = 1, minimum: int | None = None, gpus: int = 0
) -> Group:
    need = Footprint(memory * GIB, gpus=gpus)
    return Group(name, (Demand(name, 1, need, replicas),), replicas, minimum, priority)


def facts(nodes: Sequence[Node], *groups: Group, preemption: Preemption = LOWER, **fields: object) -> PoolFacts:
    return replace(PoolFacts(POOL, tuple(nodes), groups, headroom=0, preemption=preemption), **fields)


def running(before: PoolFacts, *more: Group) -> PoolFacts:
    """Return the facts once a plan is carried out, with further groups."""
    plan = pack(before)
    return replace(before, current=plan.current, groups=(*before.groups, *more))


def missing(plan: PoolPlan) -> list[str]:
    return sorted(unplaced.group for unplaced in plan.unplaced)


def where(plan: PoolPlan) -> dict[tuple[str, str], tuple[int, ...]]:
    return {(p.model, server.name): p.gpus for server in plan.servers for p in server.placements}


def test_a_higher_priority_takes_the_only_gpu() -> None:
    plan = pack(running(facts([gpu_node("a")], one("low")), one("high", 500)))
    assert missing(plan) == ["low"]
    (lost,) = plan.lost
    assert (lost.group, lost.winner, lost.priority, lost.winner_priority) == ("low", "high", 0, 500)
    assert lost.server == "p-0"


def test_without_preemption_it_waits_and_the_message_says_why() -> None:
    never = facts([gpu_node("a")], one("low"), preemption=Preemption.NEVER)
    plan = pack(running(never, one("high", 500)))
    assert (missing(plan), plan.lost) == (["high"], ())
    message = plan.unplaced[0].message
    assert "priority 500 finds no place while low with priority 0 has one that would do" in message
    assert "since packing.preemption of the pool is Never. To give it that place, set " in message


def test_an_equal_priority_gives_no_way() -> None:
    plan = pack(running(facts([gpu_node("a")], one("first", 5)), one("second", 5)))
    assert (missing(plan), plan.lost) == (["second"], ())
    assert "LowerPriority" not in plan.unplaced[0].message


def test_the_lowest_priority_gives_way() -> None:
    before = facts([gpu_node("a", 3)], one("five", 5), one("two", 2), one("nine", 9))
    assert missing(pack(running(before, one("high", 500)))) == ["two"]


def test_the_fewest_give_way() -> None:
    before = facts([gpu_node("a", 2)], one("s0", 0, 20), one("s1", 0, 20), one("s2", 0, 20), one("large", 0, 70))
    plan = pack(running(before, one("high", 500, 75)))
    assert missing(plan) == ["large"]


def test_any_number_gives_way_before_one_of_a_higher_priority() -> None:
    small = (one(f"s{n}", 0, 20) for n in range(3))
    before = facts([gpu_node("a", 2)], *small, one("kept", 3, 70))
    plan = pack(running(before, one("high", 500, 75)))
    assert missing(plan) == ["s0", "s1", "s2"]
    assert where(plan)["kept", "p-0"] == where(pack(before))["kept", "p-0"]


def test_of_the_same_priority_the_least_memory_gives_way() -> None:
    before = facts([gpu_node("a", 2)], one("large", 0, 70), one("small", 0, 60))
    assert missing(pack(running(before, one("high", 500, 55)))) == ["small"]


def test_what_would_not_help_stays() -> None:
    before = facts([gpu_node("a", 2)], one("kept", 9, 40), one("s0", 0, 30), one("s1", 0, 30), one("s2", 0, 30))
    plan = pack(running(before, one("high", 8, 40)))
    assert len(missing(plan)) == 1
    assert plan.unplaced[0].group in {"s0", "s1", "s2"}


def test_what_gives_way_moves_if_it_can() -> None:
    nodes = [gpu_node("a", memory=80), gpu_node("b", memory=40)]
    homes = {"x": "a", "y": "a", "z": "b"}
    current = tuple(
        CurrentServer(f"p-{at}", node, (0,), {name: (0,) for name in homes if homes[name] == node})
        for at, node in enumerate("ab")
    )
    before = facts(nodes, one("x", 0, 40), one("y", 0, 40), one("z", 0, 10), current=current)
    plan = pack(replace(before, groups=(*before.groups, one("high", 500, 80))))
    assert [lost.group for lost in plan.lost] == missing(plan)
    assert len(missing(plan)) == 2


def test_a_model_of_several_gpus_takes_no_more_of_them() -> None:
    low = [one(f"low-{n}", 0, 60) for n in range(4)]
    plan = pack(running(facts([linked_node("a", 4)], *low), one("high", 500, 60, gpus=2)))
    assert len(missing(plan)) == 2
    assert {lost.winner for lost in plan.lost} == {"high"}


def test_replicas_beyond_a_minimum_give_way_first_whatever_their_priority() -> None:
    before = facts([gpu_node(name) for name in "abc"], one("scaled", 900, 60, 2, 1), one("low", 0))
    for preemption in Preemption:
        plan = pack(replace(running(before, one("new", 5)), preemption=preemption))
        assert missing(plan) == ["scaled"], preemption


def test_what_is_optional_takes_nothing_that_must_serve() -> None:
    before = facts([gpu_node(name) for name in "ab"], one("high", 500), one("low", 0))
    more = replace(running(before), groups=(one("high", 500, 60, 2, 1), one("low", 0)))
    assert missing(pack(more)) == ["high"]


def test_any_replica_of_a_group_may_be_the_one_beyond_its_minimum() -> None:
    wide = CurrentServer("p-0", "a", (0,), {"scaled": (0,)}), CurrentServer("p-1", "b", (0,), {"scaled": (0,)})
    nodes = [gpu_node("a", memory=80), gpu_node("b", memory=40)]
    scaled = one("scaled", 0, 30, 2, 1)
    plan = pack(facts(nodes, scaled, one("large", 0, 80), current=wide, preemption=Preemption.NEVER))
    assert missing(plan) == ["scaled"]
    assert ("large", "p-0") in where(plan)


def test_what_lost_may_take_from_what_is_lower_still() -> None:
    nodes = [gpu_node("a", memory=80), gpu_node("b", memory=60)]
    before = facts(nodes, one("mid", 5, 60), one("low", 0, 60))
    on = {"mid": ("p-0", "a"), "low": ("p-1", "b")}
    current = tuple(CurrentServer(server, node, (0,), {name: (0,)}) for name, (server, node) in on.items())
    plan = pack(replace(before, current=current, groups=(*before.groups, one("high", 9, 80))))
    assert missing(plan) == ["low"]


def test_a_pool_with_all_of_its_servers_lets_one_go() -> None:
    before = facts([gpu_node("a"), gpu_node("b", memory=100)], one("low", 0, 70), max_servers=1)
    plan = pack(running(before, one("high", 5, 90)))
    assert missing(plan) == ["low"]


def test_on_hosts_without_gpus_memory_is_taken_likewise() -> None:
    host = Node("a", (Gpu(0, 80 * GIB, is_cpu=True),))
    plan = pack(running(facts([host], one("low"), one("other", 7, 10)), one("high", 500)))
    assert missing(plan) == ["low"]


def test_in_a_running_fleet_that_loses_nodes_the_lower_priorities_wait() -> None:
    drawn = Random(1)
    groups = [_any_group(f"m{n}", drawn) for n in range(1200)]
    nodes = [gpu_node(f"n{at:02}", 8) for at in range(37)]
    before = running(facts(nodes, *groups))
    plan = pack(replace(before, nodes=before.nodes[:25]))
    waiting = {group.priority for group in groups if group.name in set(missing(plan))}
    assert 0 in waiting
    assert not waiting & {10, 100}


def _any_group(name: str, drawn: Random) -> Group:
    priority = drawn.choice((0, 5, 10, 100))
    need = Footprint(drawn.choice((4, 6, 10, 15, 20, 30, 40)) * GIB, drawn.choice((50, 100, 200)))
    return Group(name, (Demand(name, 1, need),), 1, None, priority)


sizes = st.integers(1, 8).map(lambda size: size * 10)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[PoolFacts, PoolFacts]:
    """Draw the facts of a pool in which some models run, and others arrive."""
    nodes = [gpu_node(name, draw(st.integers(1, 2)), 80) for name in "abc"[: draw(st.integers(1, 3))]]
    groups = [
        one(
            f"m{n}",
            draw(st.integers(0, 3)),
            draw(sizes),
            replicas := draw(st.integers(1, 2)),
            draw(st.integers(0, replicas)),
        )
        for n in range(draw(st.integers(1, 8)))
    ]
    some = draw(st.integers(0, len(groups)))
    before = facts(nodes, *groups[:some], preemption=draw(st.sampled_from(list(Preemption))))
    return before, running(before, *groups[some:])


def _load(plan: PoolPlan) -> dict[tuple[str, int], list[tuple[str, int]]]:
    """Return the models of each GPU with their bytes."""
    load: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for server in plan.servers:
        for placement in server.placements:
            for gpu in placement.gpus:
                load.setdefault((server.node, gpu), []).append((placement.group, placement.memory))
    return load


def _counts(plan: PoolPlan) -> dict[str, int]:
    return {group: sum(group == name for name, _ in where(plan)) for group, _ in where(plan)}


@given(fleets())
@examples(50)
def test_priorities_are_obeyed_and_an_unchanged_fleet_keeps_its_plan(drawn: tuple[PoolFacts, PoolFacts]) -> None:
    before, after = drawn
    plan = pack(after)
    assert broken_rules(after, plan) == []
    again = pack(replace(after, current=plan.current))
    assert (where(again), missing(again), again.lost) == (where(plan), missing(plan), ())
    assert_losers_are_of_lower_rank(after, plan)
    assert_nothing_lower_holds_enough_for_what_waits(after, plan)
    if after.preemption is Preemption.NEVER:
        counts, then = _counts(pack(before)), _counts(plan)
        for group in before.groups:
            assert then.get(group.name, 0) >= min(counts.get(group.name, 0), group.needed)


def assert_losers_are_of_lower_rank(facts: PoolFacts, plan: PoolPlan) -> None:
    groups, counts = {group.name: group for group in facts.groups}, _counts(plan)
    for lost in plan.lost:
        assert lost.winner != lost.group
        if counts.get(lost.group, 0) < groups[lost.group].needed:
            assert facts.preemption is LOWER
            assert groups[lost.winner].priority > groups[lost.group].priority


def assert_nothing_lower_holds_enough_for_what_waits(facts: PoolFacts, plan: PoolPlan) -> None:
    load, counts = _load(plan), _counts(plan)
    for waiting in (group for group in facts.groups if group.name in missing(plan)):
        if counts.get(waiting.name, 0) >= waiting.needed:
            continue
        beyond = {group.name for group in facts.groups if counts.get(group.name, 0) - 1 >= group.needed}
        lower = {group.name for group in facts.groups if group.priority < waiting.priority}
        may_go = lower | beyond if facts.preemption is LOWER else beyond
        own = {server for name, server in where(plan) if name == waiting.name}
        has = {(server.node, gpu) for server in plan.servers if server.name in own for gpu in server.gpus}
        need = waiting.demands[0].footprint.memory
        for node in facts.nodes:
            for gpu in node.gpus:
                here = load.get((node.name, gpu.index), ())
                left = gpu.memory - sum(size for group, size in here if group not in may_go)
                assert left < need or (node.name, gpu.index) in has, (waiting.name, node.name, gpu.index)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9), st.integers(1, 4), st.data())
@examples(40)
def test_the_order_of_arrival_changes_nothing(priorities: list[int], gpus: int, data: st.DataObject) -> None:
    groups = [one(f"m{n}", priority) for n, priority in enumerate(priorities)]
    first = data.draw(st.permutations(groups))[: data.draw(st.integers(0, len(groups)))]
    before = facts([gpu_node("a", gpus)], *first)
    later = pack(replace(running(before), groups=tuple(groups)))
    together = pack(facts([gpu_node("a", gpus)], *groups))
    by_name = {group.name: group.priority for group in groups}
    assert sorted(map(by_name.get, missing(later))) == sorted(map(by_name.get, missing(together)))  # type: ignore[type-var]
    assert sorted(map(by_name.get, missing(later))) == sorted(priorities)[: max(0, len(priorities) - gpus)]  # type: ignore[type-var]

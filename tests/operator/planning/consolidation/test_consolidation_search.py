"""The steps of consolidation: which servers are emptied, in which order, and what holds of every one of them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.operator.planning.consolidation.fleets import POOL, after, churned, exclusive, running, shared
from tests.operator.planning.declared import GIB, gpu_node, linked_node, lone
from tests.properties import examples

from argosy.planning.consolidation.fleet import RunningFleet
from argosy.planning.consolidation.moves import Move, Step, applied
from argosy.planning.consolidation.search import StepLimits, find_steps
from argosy.planning.consolidation.stepping import Slots, perform
from argosy.planning.facts import Demand, Footprint, Group, PoolFacts
from argosy.planning.packing.solve import pack
from argosy.planning.spreading import ZONE

NO_LIMIT = StepLimits(1 << 60, 1000)
HALF_EMPTY = {
    "p-0": ("a", (0,), {"big": (0,)}),
    "p-1": ("b", (0,), {"mid": (0,)}),
    "p-2": ("c", (0,), {"small": (0,)}),
}
NODES = tuple(gpu_node(name, 1) for name in "abc")
THREE = (shared("big", 50), shared("mid", 30), shared("small", 20))


def free_slots(facts: PoolFacts) -> tuple[int, ...]:
    """Return the free GPUs, and those of slots of 8, 4 and 2 of a node, counted by the test itself."""
    used = Counter(server.node for server in facts.current if server.placed for _ in server.gpus)
    free = [len(node.gpus) - used[node.name] for node in facts.nodes]
    return (sum(free), *(sum(count // size * size for count in free) for size in (8, 4, 2)))


def test_the_cheapest_server_is_emptied_first_and_the_rest_follows_from_it() -> None:
    facts = running(HALF_EMPTY, THREE, NODES)
    (step,) = find_steps(facts, (), NO_LIMIT)
    assert (step.server, step.node, step.freed, step.bytes) == ("p-2", "c", 1, 20 * GIB)
    assert [(move.group, move.source, move.target) for move in step.moves] == [("small", "p-2", "p-0")]


def test_a_smaller_replica_gives_way_where_that_frees_a_gpu() -> None:
    groups = (shared("a", 50), shared("b", 12), shared("c", 22), shared("d", 65))
    servers = {
        "p-0": ("a", (0,), {"a": (0,), "b": (0,)}),
        "p-1": ("b", (0,), {"d": (0,)}),
        "p-2": ("c", (0,), {"c": (0,)}),
    }
    facts = running(servers, groups, NODES)
    (step,) = find_steps(facts, (), NO_LIMIT)
    moves = {(move.group, move.source, move.target) for move in step.moves}
    assert moves == {("c", "p-2", "p-0"), ("b", "p-0", "p-1")}
    assert pack(applied(facts, step.moves)).gpus_used == 2
    assert find_steps(facts, ("b",), NO_LIMIT) == ()


@pytest.mark.parametrize(
    ("facts", "fixed_groups"),
    [
        (running(HALF_EMPTY, (shared("big", 50), shared("mid", 50), shared("small", 40)), NODES), ()),
        (running(HALF_EMPTY, THREE, NODES), ("small", "mid", "big")),
        (running(HALF_EMPTY, THREE, NODES, min_servers=3), ()),
        (running(HALF_EMPTY, THREE, tuple(gpu_node(name, 1, schedulable=False) for name in "abc")), ()),
        (running(HALF_EMPTY, (THREE[0], shared("mid", 30, 950), shared("small", 20, 950)), NODES), ()),
    ],
    ids=["memory", "fixed group", "minServers", "cordoned", "compute"],
)
def test_nothing_moves_where_no_gpu_comes_free(facts: PoolFacts, fixed_groups: tuple[str, ...]) -> None:
    assert find_steps(facts, fixed_groups, NO_LIMIT) == ()


def test_replicas_of_one_model_stay_on_different_servers() -> None:
    groups = (shared("m", 10, replicas=2),)
    facts = running({"p-0": ("a", (0,), {"m": (0,)}), "p-1": ("b", (0,), {"m": (0,)})}, groups, NODES)
    assert find_steps(facts, (), NO_LIMIT) == ()


def test_a_step_is_within_its_limits() -> None:
    facts = running(HALF_EMPTY, THREE, NODES)
    assert find_steps(facts, (), StepLimits(20 * GIB - 1, 1000)) == ()
    assert find_steps(facts, (), StepLimits(20 * GIB, 0)) == ()
    assert len(find_steps(facts, (), StepLimits(20 * GIB, 1))) == 1


def test_free_gpus_of_two_nodes_become_a_larger_slot_of_one() -> None:
    facts = running(
        {"p-0": ("a", (0,), {"x": (0,)}), "p-1": ("b", (0,), {"y": (0,)})},
        (exclusive("x"), exclusive("y")),
        (linked_node("a", 2), linked_node("b", 2)),
    )
    (step,) = find_steps(facts, (), NO_LIMIT)
    assert (step.freed, step.gain) == (0, 2)
    moved = after(applied(facts, step.moves))
    assert free_slots(moved) > free_slots(facts)
    assert find_steps(moved, (), NO_LIMIT) == ()


def crowding(facts: PoolFacts) -> tuple[int, int]:
    """Return how many replicas share a node with another one of their model, and how many share a zone."""
    zones = {node.name: node.domain(ZONE) for node in facts.nodes}
    several = [group.demands[0].model for group in facts.groups if group.replicas > 1]
    hosts = {model: [one.node for one in facts.current if model in one.placed] for model in several}
    in_zones = [[zones[node] for node in nodes] for nodes in hosts.values()]
    return (
        sum(len(nodes) - len(set(nodes)) for nodes in hosts.values()),
        sum(len(of_model) - len(set(of_model)) for of_model in in_zones),
    )


@pytest.mark.parametrize(
    "groups",
    [
        (shared("m", 40, replicas=2),),
        (replace(exclusive("x"), replicas=2),),
        (replace(exclusive("x"), replicas=2), lone("c", Footprint(), 2)),
    ],
    ids=["shared", "exclusive", "next to some on the CPU"],
)
def test_a_larger_slot_is_not_worth_replicas_close_together(groups: tuple[Group, ...]) -> None:
    nodes = (linked_node("a", 2), linked_node("b", 2))
    facts = after(PoolFacts(POOL, nodes, groups, headroom=0))
    assert len({server.node for server in facts.current}) == 2
    assert find_steps(facts, (), NO_LIMIT) == ()


def test_replicas_on_the_cpu_stay_apart_too() -> None:
    nodes = (linked_node("a", 2), linked_node("b", 2))
    servers = {"p-0": ("a", (0,), {"x": (0,), "c": ()}), "p-1": ("b", (0,), {"y": (0,), "c": ()})}
    facts = running(servers, (exclusive("x"), exclusive("y"), lone("c", Footprint(), 2)), nodes)
    assert find_steps(facts, (), NO_LIMIT) == ()
    third = {**servers, "p-2": ("c", (), {"d": ()})}
    groups = (exclusive("x"), exclusive("y"), lone("c", Footprint(), 2), lone("d", Footprint()))
    (step,) = find_steps(running(third, groups, (*nodes, gpu_node("c", 0))), (), NO_LIMIT)
    assert {(move.group, move.target_node) for move in step.moves} == {("x", "b"), ("c", "c")}


def test_a_gpu_is_worth_replicas_on_one_node_as_it_is_to_a_plan() -> None:
    nodes = (gpu_node("a", 2), gpu_node("b", 1))
    servers = {
        "p-0": ("a", (0,), {"m": (0,), "x": (0,)}),
        "p-1": ("a", (1,), {"n": (1,)}),
        "p-2": ("b", (0,), {"m": (0,)}),
    }
    groups = (shared("m", 30, replicas=2), shared("n", 40), shared("x", 45))
    facts = running(servers, groups, nodes)
    (step,) = find_steps(facts, (), NO_LIMIT)
    assert (step.freed, step.server) == (1, "p-2")
    assert pack(replace(facts, current=())).gpus_used == pack(applied(facts, step.moves)).gpus_used == 2


@examples(10)
@given(st.integers(0, 10_000))
def test_no_step_that_frees_nothing_puts_replicas_closer_together(seed: int) -> None:
    random = Random(seed)
    facts = churned(seed)
    zoned = tuple(replace(node, labels={ZONE: random.choice("xyz")}) for node in facts.nodes)
    facts = after(replace(facts, nodes=zoned, groups=tuple(_with_cpu_replicas(facts, random))))
    while steps := find_steps(facts, (), NO_LIMIT):
        following = after(applied(facts, steps[0].moves))
        assert steps[0].freed or crowding(following) <= crowding(facts)
        facts = following


def _with_cpu_replicas(facts: PoolFacts, random: Random) -> list[Group]:
    """Return the groups of a fleet with a few on the CPU in addition."""
    return [*facts.groups, *(lone(f"c{at}", Footprint(), random.randint(1, 3)) for at in range(3))]


def test_the_models_of_an_ensemble_and_those_on_the_cpu_move_together() -> None:
    pair = Group("e", (Demand("s", 1, Footprint(10 * GIB, 100)), Demand("t", 1, Footprint())))
    facts = running(
        {"p-0": ("a", (0,), {"e0": (0,)}), "p-1": ("b", (0,), {"s": (0,), "t": (), "u": ()})},
        (shared("e0", 30), pair, Group("u", (Demand("u", 1, Footprint()),))),
        NODES,
    )
    (step,) = find_steps(facts, (), NO_LIMIT)
    assert step.server == "p-1"
    assert {(move.group, move.target, tuple(sorted(move.gpus))) for move in step.moves} == {
        ("e", "p-0", ("s", "t")),
        ("u", "p-0", ("u",)),
    }
    (server,) = pack(applied(facts, step.moves)).servers
    assert server.current.placed == {"e0": (0,), "s": (0,), "t": (), "u": ()}


def steps_one_by_one(facts: PoolFacts) -> list[Step]:
    """Return the steps that are found when each is carried out before the next is searched for, within one hour."""
    done: list[Step] = []
    while steps := find_steps(facts, (), within_the_hour(done)):
        done.append(steps[0])
        facts = after(applied(facts, steps[0].moves))
    return done


def within_the_hour(done: Iterable[Step]) -> StepLimits:
    """Return the limits of a step after those that were done within the last hour."""
    return replace(NO_LIMIT, recent=frozenset((move.group, move.target) for step in done for move in step.moves))


@examples(6)
@given(st.integers(0, 10_000))
def test_nothing_moves_there_and_back_while_models_come_and_go(seed: int) -> None:
    """An hour of rounds, in each of which a few models come and go, and one step is done."""
    random, facts = Random(seed), after(churned(seed))
    done: list[Step] = []
    left = set[tuple[str, str]]()
    for number in range(12):
        facts = after(changed(facts, number, random))
        steps = find_steps(facts, (), within_the_hour(done))
        if steps:
            nodes = {server.name: server.node for server in facts.current}
            for move in steps[0].moves:
                single = all(group.replicas == 1 for group in facts.groups if group.name == move.group)
                assert not single or (move.group, move.target_node) not in left
                left.add((move.group, nodes[move.source]))
            done.append(steps[0])
            facts = after(applied(facts, steps[0].moves))
    assert len({(move.group, move.target) for step in done for move in step.moves}) == sum(
        len(step.moves) for step in done
    )


def changed(facts: PoolFacts, number: int, random: Random) -> PoolFacts:
    """Return the facts once two models have gone and two have come."""
    gone = set(random.sample([group.name for group in facts.groups], 2))
    came = [shared(f"new-{number}-{at}", random.randint(2, 40), 50 * random.randint(0, 6)) for at in range(2)]
    current = (
        replace(server, placed={model: gpus for model, gpus in server.placed.items() if model not in gone})
        for server in facts.current
    )
    return replace(
        facts,
        groups=(*(group for group in facts.groups if group.name not in gone), *came),
        current=tuple(server for server in current if server.placed),
    )


def test_a_replica_that_was_moved_stays_for_now() -> None:
    facts = running(HALF_EMPTY, THREE, NODES)
    every = frozenset({("small", "p-2"), ("mid", "p-1"), ("big", "p-0")})
    assert find_steps(facts, (), replace(NO_LIMIT, recent=every)) == ()
    assert find_steps(facts, (), replace(NO_LIMIT, recent=frozenset({("small", "p-9")}))) != ()


def test_a_model_on_the_cpu_stays_as_others_do() -> None:
    groups = (shared("big", 30), shared("small", 20), Group("u", (Demand("u", 1, Footprint()),)))
    facts = running({"p-0": ("a", (0,), {"big": (0,)}), "p-1": ("b", (0,), {"small": (0,), "u": ()})}, groups, NODES)
    assert [step.server for step in find_steps(facts, (), NO_LIMIT)] == ["p-1"]
    assert [step.server for step in find_steps(facts, ("u",), NO_LIMIT)] == ["p-0"]
    recent = replace(NO_LIMIT, recent=frozenset({("u", "p-1")}))
    assert [step.server for step in find_steps(facts, (), recent)] == ["p-0"]


@examples(12)
@given(st.integers(0, 10_000))
def test_every_step_frees_what_it_says_and_none_is_undone(seed: int) -> None:
    facts = after(churned(seed))
    bindings = {(group, server.name) for server in facts.current for group in server.placed}
    left: set[tuple[str, str]] = set()
    while steps := find_steps(facts, (), NO_LIMIT):
        step = steps[0]
        moved = applied(facts, step.moves)
        plan = pack(moved)
        assert not plan.unplaced
        assert {s.name: dict(s.placed) for s in plan.current} == {s.name: s.placed for s in moved.current if s.placed}
        assert pack(facts).gpus_used - plan.gpus_used == step.freed >= 0
        following = replace(facts, current=plan.current)
        assert free_slots(following) > free_slots(facts)
        left |= {(move.group, move.source) for move in step.moves if move.source == step.server}
        facts = following
    assert len(left) <= len(bindings)
    assert find_steps(facts, (), NO_LIMIT) == ()


@examples(8)
@given(st.integers(0, 10_000))
def test_what_is_recommended_together_is_what_is_done_one_by_one(seed: int) -> None:
    facts = after(churned(seed))
    recommended = find_steps(facts, (), NO_LIMIT)
    done = steps_one_by_one(facts)
    assert [step.server for step in done[: len(recommended)]] == [step.server for step in recommended]


@examples(8)
@given(st.integers(0, 10_000))
def test_the_order_of_the_facts_changes_nothing(seed: int) -> None:
    facts, random = after(churned(seed)), Random(seed)
    shuffled = replace(
        facts,
        current=tuple(random.sample(facts.current, len(facts.current))),
        groups=tuple(random.sample(facts.groups, len(facts.groups))),
        nodes=tuple(random.sample(facts.nodes, len(facts.nodes))),
    )
    assert find_steps(shuffled, (), NO_LIMIT) == find_steps(facts, (), NO_LIMIT)


def fragmented(seed: int) -> PoolFacts:
    """Return one-GPU servers on which replicated models of a few sizes are placed at random, with gaps."""
    random = Random(seed)
    nodes = tuple(gpu_node(f"n{at}", 1) for at in range(random.randint(5, 10)))
    names = [f"g{at}" for at in range(random.randint(4, 9))]
    sizes = {name: random.choice([10, 15, 20, 25, 30, 35]) for name in names}
    servers: dict[str, tuple[str, tuple[int, ...], dict[str, tuple[int, ...]]]] = {}
    replicas = Counter[str]()
    for at, node in enumerate(nodes):
        placed, free = dict[str, tuple[int, ...]](), 80
        for name in random.sample(names, len(names)):
            if sizes[name] <= free - random.choice([0, 10, 25]) and random.random() < 0.55:
                placed[name], free = (0,), free - sizes[name]
                replicas[name] += 1
        servers[f"p-{at}"] = (node.name, (0,), placed)
    groups = [shared(name, sizes[name], replicas=count) for name, count in replicas.items()]
    return running(servers, groups, nodes)


@examples(30)
@example(37)
@given(st.integers(0, 10_000))
def test_replicas_of_a_step_are_recorded_on_their_new_servers(seed: int) -> None:
    facts, steps = fragmented(seed), 0

    def checked(fleet: RunningFleet, emptied: str, moves: Iterable[Move], after: Slots) -> None:
        nonlocal steps
        perform(fleet, emptied, moves, after)
        steps += 1
        assert fleet.owners == {gpu: name for name, gpus in fleet.gpus.items() for gpu in gpus}
        for name, items in fleet.items.items():
            assert all(gpu in fleet.gpus[name] for at in items for of_need in fleet.state.slots[at] for gpu in of_need)
        nodes, node_of = fleet.state.devices.nodes, fleet.state.devices.node
        assert all(fleet.hosts[name] == nodes[node_of[gpu]] for gpu, name in fleet.owners.items())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("argosy.planning.consolidation.search.perform", checked)
        assert len(find_steps(facts, (), NO_LIMIT)) == steps

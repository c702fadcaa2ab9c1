"""The search of packing: few GPUs where a greedy order takes more, never more than first-fit, exact undoing."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import linked_node, lone
from tests.operator.planning.test_packing_properties import pools
from tests.properties import examples

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.packing.layout import Layout, Replica, Topology
from argosy.planning.packing.lower_bound import lower_bound
from argosy.planning.packing.search.devices import devices_of
from argosy.planning.packing.search.items import items_of
from argosy.planning.packing.search.slots import Preference, find_slot
from argosy.planning.packing.search.state import State
from argosy.planning.packing.solve import pack

GIB = 1 << 30


def pool(nodes: Sequence[Node], groups: Sequence[Group], **others: object) -> PoolFacts:
    return PoolFacts(PoolKey("default/p"), tuple(nodes), tuple(groups), headroom=0, **others)  # type: ignore[arg-type]


def part(memory: int, compute: int = 10) -> Footprint:
    return Footprint(memory * GIB, compute)


def node(name: str, gpus: int, memory: int) -> Node:
    return Node(name, tuple(Gpu(index, memory * GIB) for index in range(gpus)))


def test_a_swap_frees_a_gpu_that_every_size_order_takes() -> None:
    """Three GPUs of 10 hold 4+3+3 each; largest first takes 4+4, 4+3+3, 3+3+3 and 3."""
    sizes = (4, 4, 4, 3, 3, 3, 3, 3, 3)
    facts = pool([node("a", 4, 10)], [lone(f"m{at}", part(size)) for at, size in enumerate(sizes)])
    assert pack(facts).gpus_used == lower_bound(facts) == 3


def test_the_largest_gpus_are_taken_where_they_are_fewer() -> None:
    nodes = [node("a-small", 4, 10), node("b-large", 4, 40)]
    plan = pack(pool(nodes, [lone(f"m{at}", part(10)) for at in range(8)]))
    assert {server.node for server in plan.servers} == {"b-large"}
    assert plan.gpus_used == 2


def test_what_fits_only_large_gpus_finds_them_free() -> None:
    nodes = [node("a", 1, 40), node("b", 4, 10)]
    plan = pack(pool(nodes, [lone("big", part(40)), *(lone(f"m{at}", part(10)) for at in range(4))]))
    assert not plan.unplaced


@pytest.mark.parametrize("most", [None, 2, 10])
def test_replicas_share_a_node_rather_than_take_a_further_gpu(most: int | None) -> None:
    """Both GPUs of one node have a model of 6, and room for a replica of 4; a replica on another node takes a third."""
    groups = [lone("m", part(6)), lone("n", part(6)), lone("x", part(4), 2)]
    plan = pack(pool([node("a", 2, 10), node("b", 2, 10)], groups, max_servers=most))
    assert (plan.gpus_used, plan.unplaced) == (2, ())


@given(pools(most=6, nodes=2, gpus=3, models=2))
@examples(25)
def test_a_further_node_leaves_nothing_out_that_fitted(facts: PoolFacts) -> None:
    if not pack(facts).unplaced:
        assert not pack(replace(facts, nodes=(*facts.nodes, linked_node("z", 2)))).unplaced


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 1000)), min_size=1, max_size=14))
@examples(40)
def test_no_plan_takes_more_gpus_than_first_fit_or_best_fit_decreasing(sizes: list[tuple[int, int]]) -> None:
    groups = [lone(f"m{at:02}", part(*size)) for at, size in enumerate(sizes)]
    plan = pack(pool([node(f"n{at}", 4, 10) for at in range(4)], groups))
    assert not plan.unplaced
    assert plan.gpus_used <= min(decreasing(sizes, best) for best in (False, True))


def decreasing(sizes: Sequence[tuple[int, int]], best: bool) -> int:
    """Return the GPUs that first-fit or best-fit decreasing takes."""
    gpus: list[tuple[int, int]] = []
    for memory, compute in sorted(sizes, key=lambda size: max(size[0] * 100, size[1]), reverse=True):
        able = [at for at, (left, idle) in enumerate(gpus) if left >= memory and idle >= compute]
        if not able:
            gpus.append((10 - memory, 1000 - compute))
            continue
        at = min(able, key=lambda at: gpus[at][0]) if best else able[0]
        gpus[at] = (gpus[at][0] - memory, gpus[at][1] - compute)
    return len(gpus)


@pytest.mark.parametrize("seed", range(5))
def test_undoing_restores_every_part_of_the_state(seed: int) -> None:
    numbers = random.Random(seed)
    groups = [lone(f"s{at}", part(numbers.randint(1, 9)), numbers.randint(1, 3)) for at in range(6)]
    groups += [lone("w", Footprint(5 * GIB, 0, 2)), lone("v", Footprint(5 * GIB, 0, 1))]
    facts = pool([linked_node(name, 3) for name in "abcd"], groups)
    layout = Layout.empty(Topology.of(facts))
    items = items_of(layout.topology, [Replica(group, at) for group in groups for at in range(group.replicas)])
    state = State(devices_of(layout), items)
    _fill_some(state, numbers)
    before = _picture(state)
    state.log = []
    for number in numbers.sample(sorted(state.slots), len(state.slots) // 2):
        state.take(items[number])
    _fill_some(state, numbers)
    assert _picture(state) != before
    state.undo()
    assert _picture(state) == before


def _fill_some(state: State, numbers: random.Random) -> None:
    for item in numbers.sample(list(state.items), len(state.items) // 2):
        if item.number not in state.slots and (result := find_slot(state, item, Preference())) is not None:
            state.put(item, result)


def _picture(state: State) -> list[object]:
    gpus = [state.free, state.spare, state.compute, state.sealed, state.ties, state.sizes, map(sorted, state.on)]
    nodes = [state.nodes.counts, state.domains.counts, state.node_free]
    sums = [state.used, state.shared_nodes, state.shared_domains, state.fullness]
    hosts = {group: dict(counts) for group, counts in state.hosts.items() if counts}
    return [*map(list, gpus), *map(list, nodes), *sums, sorted(state.open), hosts, dict(state.slots)]


def test_new_models_on_several_idle_gpus_of_a_running_server_are_all_placed() -> None:
    facts = pool([node("a", 3, 10)], [lone("m", part(9)), lone("x", part(8)), lone("y", part(8))])
    plan = pack(replace(facts, current=(CurrentServer("p-0", "a", (0, 1, 2), {"m": (0,)}),)))
    assert sorted(group for server in plan.servers for group in server.groups) == ["m", "x", "y"]


def test_no_two_replicas_are_on_idle_gpus_of_one_running_server() -> None:
    facts = pool([node("a", 3, 10)], [lone("m", part(9)), lone("x", part(8), 2)])
    plan = pack(replace(facts, current=(CurrentServer("p-0", "a", (0, 1, 2), {"m": (0,)}),)))
    assert [sorted(server.groups) for server in plan.servers] == [["m", "x"], ["x"]]

"""Ejection: a GPU comes free that others make room for, and a state that needs all its GPUs is as before."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import lone
from tests.operator.planning.test_packing_search import node, part, pool
from tests.properties import examples

from argosy.planning.packing.layout import Layout, Replica, Topology
from argosy.planning.packing.search.devices import devices_of
from argosy.planning.packing.search.ejection import Ejection
from argosy.planning.packing.search.freeing import Ejectable
from argosy.planning.packing.search.items import items_of
from argosy.planning.packing.search.objective import Bound
from argosy.planning.packing.search.slots import Preference, find_slot
from argosy.planning.packing.search.state import State


def filled(sizes: Sequence[int], slots: Mapping[int, Sequence[int]] | None = None, nodes: int = 1) -> State:
    """Return a state on GPUs of 10, four to a node, with items of these sizes: by GPU, or each where it first fits."""
    groups = [lone(f"m{at:02}", part(size)) for at, size in enumerate(sizes)]
    layout = Layout.empty(Topology.of(pool([node(f"n{at}", 4, 10) for at in range(nodes)], groups)))
    state = State(devices_of(layout), items_of(layout.topology, [Replica(group, 0) for group in groups]))
    by_name = {item.group: item for item in state.items}
    for gpu, members in (slots or {}).items():
        for member in members:
            state.put(by_name[groups[member].name], ((gpu,),))
    for item in state.items:
        if item.number not in state.slots:
            slot = find_slot(state, item, Preference())
            assert slot is not None
            state.put(item, slot)
    return state


def search(state: State) -> int:
    """Return the GPUs that are used afterwards."""
    Ejection(state, Bound.of(state.devices, state.items)).search()
    assert sorted(state.slots) == list(range(len(state.items)))
    assert min(state.free) >= 0
    return state.used


def test_a_gpu_comes_free_though_no_single_item_can_move() -> None:
    """Largest first takes 4+4, 4+3+3, 3+3+3 and 3, where three GPUs hold 4+3+3 each."""
    state = filled((4, 4, 4, 3, 3, 3, 3, 3, 3), {0: (0, 1), 1: (2, 3, 4), 2: (5, 6, 7), 3: (8,)})
    assert state.used == 4
    assert search(state) == 3


def test_a_gpu_comes_free_across_nodes() -> None:
    state = filled((6, 6, 6, 6, 6, 4, 4, 4, 4, 4), {at: (at,) for at in range(5)} | {5: (5, 6), 6: (7, 8), 7: (9,)}, 2)
    assert state.used == 8
    assert search(state) == 5


def test_a_state_that_needs_its_gpus_is_as_before() -> None:
    """Two GPUs would have the volume for three items of 6."""
    state = filled((6, 6, 6, 2))
    before = dict(state.slots)
    Ejection(state, Bound(2)).search()
    assert state.slots == before


def test_the_bound_knows_what_no_gpu_has_in_parts() -> None:
    """Two GPUs would have the volume for three items of 6, but no two of them share one."""
    state = filled((6, 6, 6, 2))
    assert Bound.of(state.devices, state.items).gpus == 3


def test_what_takes_a_part_of_a_gpu_ejects_items_of_one() -> None:
    """GPUs have 7, and 5 next to 4: 6 goes where 7 or 5 was, and a 4 more is of no use without the 5."""
    state = filled((7, 5, 4, 6), {0: (0,), 1: (1, 2), 2: (3,)})
    item = state.items[3]
    state.take(item)
    sets = Ejectable(state, [1, 1, 1, 5], Random(1)).sets(item, 0, (1, 2), may_open=0)
    assert sorted((one.failures, one.gpus, one.numbers) for one in sets) == [
        (1, (0,), (0,)),
        (1, (1,), (1,)),
        (2, (1,), (1, 2)),
    ]


@pytest.mark.parametrize(("items", "gpus"), [(200, 20), (201, 23)])
def test_nothing_is_ejected_among_more_than_200_items(items: int, gpus: int) -> None:
    state = filled((1,) * items, {gpu: range(9 * gpu, min(items, 9 * gpu + 9)) for gpu in range(23)}, nodes=6)
    assert state.used == 23
    assert search(state) == gpus


def test_several_items_are_ejected_where_no_single_one_makes_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items of 3 go next to those of 7 only once two of them gave way to the one of 6."""
    monkeypatch.setattr(Ejection, "_move", lambda _: None)
    state = filled((3, 3, 3, 7, 7, 6), {0: (0, 1, 2), 1: (3,), 2: (4,), 3: (5,)})
    assert search(state) == 3


@given(st.lists(st.integers(1, 9), min_size=2, max_size=20))
@examples(40)
def test_no_search_takes_more_gpus_or_depends_on_chance(sizes: list[int]) -> None:
    first, second = filled(sizes, nodes=5), filled(sizes, nodes=5)
    used = first.used
    assert search(first) <= used
    assert search(second) == first.used
    assert second.slots == first.slots


def test_an_item_that_fits_nowhere_else_keeps_its_gpu() -> None:
    """Both are on one node, and without the one that is taken out nothing is placed or can be ejected."""
    state = filled((6, 5))
    before = dict(state.slots)
    Ejection(state, Bound(1)).search()
    assert state.slots == before

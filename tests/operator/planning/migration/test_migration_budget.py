"""A server's GPU memory while it changes: no GPU is ever promised more than it has."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import GIB

from argosy.planning.migration.memory.budget import MemoryBudget
from argosy.planning.migration.memory.changes import ModelChange, Priority, ServerChanges
from argosy.planning.migration.memory.occupancy import Occupant
from argosy.planning.plan import Placement, ServerPlan

GPU = {0: 80 * GIB}


def placed(name: str, memory: int, *gpus: int, exclusive: bool = False) -> Placement:
    return Placement(name, 2, name, gpus or (0,), 1, memory * GIB, 0, exclusive)


def there(name: str, memory: int, *gpus: int, alone: bool = False) -> Occupant:
    return Occupant(name, gpus or (0,), memory * GIB, alone)


def new(placement: Placement, memory: int | None = None) -> ModelChange:
    return ModelChange(placement, _coming(placement, memory), Priority.NEW)


def update(placement: Placement, before: Occupant, memory: int | None = None) -> ModelChange:
    return ModelChange(placement, _coming(placement, memory), Priority.UPDATE, before, frozenset({1}))


def _coming(placement: Placement, memory: int | None) -> Occupant:
    size = placement.memory if memory is None else memory * GIB
    return Occupant(placement.model, placement.gpus, size, placement.exclusive)


def admitted(
    changes: list[ModelChange], *surplus: Occupant, settled: Mapping[str, Occupant] | None = None, gpus: int = 1
) -> MemoryBudget:
    """Return the budget of a server of GPUs of 80 GiB; `settled` is loaded as it is to be."""
    loaded = {change.before.name: change.before for change in changes if change.before is not None} | dict(
        settled or {}
    )
    settled_there = tuple(placed(item.name, item.memory // GIB, *item.gpus) for item in (settled or {}).values())
    placements = (*settled_there, *(change.placement for change in changes))
    plan = ServerPlan("p-0", "a", tuple(range(gpus)), placements)
    budget = MemoryBudget(plan, dict.fromkeys(range(gpus), 80 * GIB), ServerChanges(loaded, tuple(changes)), surplus)
    budget.admit()
    return budget


def test_what_fits_alongside_all_that_is_loaded_is_let_in() -> None:
    assert admitted([new(placed("m", 30))], there("x", 50)).blocked == {}
    assert admitted([update(placed("m", 40), there("m", 40))]).blocked == {}


def test_what_is_new_waits_for_what_leaves() -> None:
    (blocked,) = admitted([new(placed("m", 31))], there("x", 50)).blocked.values()
    assert (blocked.blockers, blocked.shortage, blocked.fits_alone) == ({"x"}, None, False)


def test_what_leaves_another_gpu_is_not_waited_for() -> None:
    assert admitted([new(placed("m", 80))], there("x", 50, 1), gpus=2).blocked == {}


def test_a_change_too_large_next_to_its_former_revision_fits_after_it() -> None:
    (blocked,) = admitted([update(placed("m", 50), there("m", 50))]).blocked.values()
    assert blocked.shortage is not None
    result = blocked.shortage
    assert (result.gpu, result.need, result.free) == (0, 50 * GIB, 30 * GIB)
    assert (blocked.blockers, blocked.fits_alone) == (frozenset(), True)


def test_a_change_that_others_free_memory_for_is_short_of_nothing() -> None:
    (blocked,) = admitted([update(placed("m", 30), there("m", 30))], there("x", 40)).blocked.values()
    assert (blocked.blockers, blocked.shortage, blocked.fits_alone) == ({"x"}, None, True)


def test_of_two_changes_the_larger_goes_first_and_the_other_waits() -> None:
    changes = [update(placed("m", 20), there("m", 20)), update(placed("n", 30), there("n", 30))]
    budget = admitted(changes)
    assert {name: item.blockers for name, item in budget.blocked.items()} == {"m": {"n"}}


@pytest.mark.parametrize(("first", "blocked"), [(Priority.BEGUN, {"n"}), (Priority.FAILED, {"m"})])
def test_what_has_begun_goes_before_what_is_larger_and_what_failed_after(first: Priority, blocked: set[str]) -> None:
    m, n = placed("m", 20), placed("n", 30)
    begun = ModelChange(m, _coming(m, None), first, there("m", 20), frozenset({1}))
    assert admitted([begun, update(n, there("n", 30))]).blocked.keys() == blocked


def test_what_waits_for_space_that_comes_is_not_forestalled() -> None:
    """m waits for x; n would fit now, and would then stand in the way of m."""
    changes = [update(placed("m", 30), there("m", 30)), new(placed("n", 10))]
    assert admitted(changes, there("x", 30)).blocked.keys() == {"m", "n"}


def test_a_gpu_is_not_shared_with_one_that_must_be_alone() -> None:
    full = placed("m", 10, exclusive=True)
    assert admitted([new(full)], there("x", 1)).blocked.keys() == {"m"}
    assert admitted([new(placed("n", 10))], there("x", 10, alone=True)).blocked.keys() == {"n"}
    assert admitted([update(full, there("m", 10, alone=True))]).blocked == {}


def test_one_that_declares_no_memory_and_must_be_alone_takes_all() -> None:
    full = placed("m", 0, exclusive=True)
    (blocked,) = admitted([update(full, there("m", 0, alone=True))]).blocked.values()
    assert blocked.shortage is not None
    assert (blocked.shortage.need, blocked.shortage.free, blocked.fits_alone) == (80 * GIB, 0, True)


def test_what_nothing_will_free_memory_for_is_tried() -> None:
    """More than planned of it comes back after a server was lost: to wait would be to wait for nothing."""
    settled = {"x": there("x", 50)}
    assert admitted([new(placed("m", 20), memory=40)], settled=settled).blocked == {}


def test_what_is_on_the_cpu_needs_no_space() -> None:
    cpu = Placement("m", 1, "m", (), 1, 0, 0)
    assert admitted([new(cpu)], there("x", 80)).blocked == {}


@st.composite
def servers(draw: st.DrawFn) -> tuple[list[ModelChange], list[Occupant], dict[str, Occupant]]:
    """Draw two GPUs of 80 GiB, on which the plan fits, and what is there now fits as well."""
    planned, free = {0: 80, 1: 80}, {0: 80, 1: 80}
    changes: list[ModelChange] = []
    settled: dict[str, Occupant] = {}
    for number in range(draw(st.integers(0, 5))):
        name, gpu = f"m{number}", draw(st.integers(0, 1))
        placement = placed(name, draw(st.integers(0, planned[gpu])), gpu)
        planned[gpu] -= placement.memory // GIB
        kind = draw(st.sampled_from(["new", "update", "settled"]))
        if kind == "settled" and placement.memory // GIB <= free[gpu]:
            settled[name] = there(name, placement.memory // GIB, gpu)
            free[gpu] -= placement.memory // GIB
        elif kind == "update":
            at = draw(st.integers(0, 1))
            before = there(name, draw(st.integers(0, free[at])), at)
            free[at] -= before.memory // GIB
            changes.append(update(placement, before))
        else:
            changes.append(new(placement))
    surplus = []
    for number in range(draw(st.integers(0, 2))):
        gpu = draw(st.integers(0, 1))
        surplus.append(there(f"x{number}", draw(st.integers(0, free[gpu])), gpu))
        free[gpu] -= surplus[-1].memory // GIB
    return changes, surplus, settled


@given(servers())
def test_no_gpu_is_promised_more_than_it_has(
    drawn: tuple[list[ModelChange], list[Occupant], dict[str, Occupant]],
) -> None:
    changes, surplus, settled = drawn
    budget = admitted(changes, *surplus, settled=settled, gpus=2)
    let_in = [change for change in changes if change.placement.model not in budget.blocked]
    loaded = [*settled.values(), *surplus, *(change.before for change in changes if change.before is not None)]
    for gpu in (0, 1):
        assert sum(item.on(gpu, 80 * GIB) for item in [*loaded, *(item.coming for item in let_in)]) <= 80 * GIB


@given(servers())
def test_what_waits_has_a_blocker_or_names_what_lacks(
    drawn: tuple[list[ModelChange], list[Occupant], dict[str, Occupant]],
) -> None:
    changes, surplus, settled = drawn
    blocked = admitted(changes, *surplus, settled=settled, gpus=2).blocked
    names = {surplu.name for surplu in surplus} | {change.placement.model for change in changes}
    for name, item in blocked.items():
        assert item.blockers or item.shortage is not None
        assert item.blockers <= names - {name}


@given(servers())
def test_once_nothing_leaves_and_nothing_changes_all_that_is_new_comes(
    drawn: tuple[list[ModelChange], list[Occupant], dict[str, Occupant]],
) -> None:
    changes, _, settled = drawn
    assert admitted([change for change in changes if change.before is None], settled=settled, gpus=2).blocked == {}

"""Which models give way: as few as needed, least recently used first, and never one that must stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.ondemand.eviction import Resident, evictions


def resident(name: str, size: int, last_used: int, evictable: bool = True, *steps: str) -> Resident:
    return Resident(name, size, last_used, evictable, frozenset(steps))


@pytest.mark.parametrize(
    ("residents", "needed", "expected"),
    [
        ([], 100, []),
        ([], 101, None),
        ([resident("a", 60, 1)], 40, []),
        ([resident("a", 60, 1)], 41, ["a"]),
        ([resident("a", 60, 1, False)], 41, None),
        ([resident("new", 30, 2), resident("old", 30, 1)], 70, ["old"]),
        ([resident("new", 30, 2), resident("old", 30, 1)], 71, ["old", "new"]),
        # The small one went first, and the large one makes that unnecessary.
        ([resident("small", 10, 1), resident("large", 80, 2)], 50, ["large"]),
        # A step stays as long as its ensemble does.
        ([resident("e", 0, 2, False, "s"), resident("s", 60, 1)], 50, None),
        ([resident("e", 0, 2, True, "s"), resident("s", 60, 1)], 50, ["e", "s"]),
        ([resident("e", 0, 1, True, "s"), resident("s", 40, 2), resident("other", 40, 3)], 60, ["e", "s"]),
        # An ensemble that frees nothing does not go without need.
        ([resident("e", 0, 1, True, "s"), resident("s", 40, 9), resident("other", 40, 3)], 60, ["other"]),
    ],
)
def test_examples(residents: list[Resident], needed: int, expected: list[str] | None) -> None:
    assert evictions(residents, needed, 100) == expected


_NAMES = "abcdef"


@st.composite
def fleets(draw: st.DrawFn) -> list[Resident]:
    names = draw(st.lists(st.sampled_from(_NAMES), unique=True))
    fleet = []
    for index, name in enumerate(names):
        # Steps come later in the list, so that there is no cycle; some are not loaded.
        steps = draw(st.frozensets(st.sampled_from([*names[index + 1 :], "absent"]), max_size=2))
        size = draw(st.integers(0, 50))
        fleet.append(Resident(name, size, draw(st.integers(0, 5)), draw(st.booleans()), steps))
    return fleet


@given(fleets(), st.integers(0, 100), st.integers(0, 200))
def test_what_gives_way(fleet: list[Resident], needed: int, limit: int) -> None:
    victims = evictions(fleet, needed, limit)
    by_name = {one.name: one for one in fleet}
    if victims is None:
        assert _smallest(fleet) + needed > limit
        return
    assert len(set(victims)) == len(victims)
    gone: set[str] = set()
    for name in victims:
        assert by_name[name].evictable
        gone.add(name)
        assert not any(name in one.steps for one in fleet if one.name not in gone)
    retained = [one for one in fleet if one.name not in gone]
    assert sum(one.size for one in retained) + needed <= limit or not victims
    if sum(one.size for one in fleet) + needed <= limit:
        assert victims == []
    for name in victims:
        back = [*retained, by_name[name]]
        fits = sum(one.size for one in back) + needed <= limit
        assert not fits or not by_name[name].steps.isdisjoint(gone), f"{name} goes without need"


def _smallest(fleet: list[Resident]) -> int:
    """Return what stays when all have gone that may."""
    retained = {one.name: one for one in fleet}
    changed = True
    while changed:
        changed = False
        for one in list(retained.values()):
            if one.evictable and not any(one.name in other.steps for other in retained.values()):
                del retained[one.name]
                changed = True
    return sum(one.size for one in retained.values())

"""Which revisions there should be of a resource."""

from hypothesis import given
from hypothesis import strategies as st

from argosy.planning.history import ControllerRevision, History, revised


def of(**numbers: int) -> list[ControllerRevision]:
    """Return revisions by name."""
    return [ControllerRevision(name, number) for name, number in numbers.items()]


def test_the_first_revision_is_revision_1() -> None:
    assert revised([], "a", 10) == History(ControllerRevision("a", 1), frozenset())


def test_a_new_revision_comes_after_all_others() -> None:
    assert revised(of(a=1, b=5), "c", 10) == History(ControllerRevision("c", 6), frozenset())


def test_the_same_revision_again_changes_nothing() -> None:
    assert revised(of(a=1, b=2), "b", 10) == History(ControllerRevision("b", 2), frozenset())


def test_an_earlier_revision_that_comes_back_is_the_latest_again() -> None:
    assert revised(of(a=1, b=2), "a", 10) == History(ControllerRevision("a", 3), frozenset())


def test_a_number_that_two_have_is_no_ones_latest() -> None:
    assert revised(of(a=2, b=2), "a", 10).current == ControllerRevision("a", 3)


def test_the_oldest_beyond_the_limit_go() -> None:
    assert revised(of(a=1, b=2, c=3), "d", 2) == History(ControllerRevision("d", 4), frozenset({"a"}))
    assert revised(of(a=1, b=2, c=3), "a", 1) == History(ControllerRevision("a", 4), frozenset({"b"}))


def test_without_any_earlier_ones_the_revision_itself_is_retained() -> None:
    assert revised(of(a=1, b=2), "b", 0) == History(ControllerRevision("b", 2), frozenset({"a"}))


@given(st.lists(st.sampled_from("abcdef"), min_size=1), st.integers(0, 4))
def test_a_history_has_the_latest_revisions_in_order_of_their_last_use(revisions: list[str], limit: int) -> None:
    retained: dict[str, int] = {}
    for revision in revisions:
        history = revised([ControllerRevision(*item) for item in retained.items()], revision, limit)
        retained[revision] = history.current.number
        assert revision not in history.outdated
        retained = {name: number for name, number in retained.items() if name not in history.outdated}
    expected = list(dict.fromkeys(reversed(revisions)))
    result = sorted(retained, key=lambda name: retained[name], reverse=True)
    assert result[0] == expected[0]
    assert result == expected[: len(result)]
    assert len(result) <= limit + 1


def test_a_good_spec_is_not_pushed_out_by_later_ones() -> None:
    history = revised(of(a=1, b=2, c=3, d=4), "e", 2, good={"a"})
    assert history.outdated == {"b", "c"}
    assert revised(of(a=1, b=2, c=3), "d", 1, good={"a", "b"}).outdated == {"a", "c"}
    assert revised(of(a=1, b=2), "c", 0, good={"a", "b"}).outdated == {"a", "b"}

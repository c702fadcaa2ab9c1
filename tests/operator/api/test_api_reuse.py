"""Values that a round takes again from the one before."""

from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis import given

from argosy.api.values.reuse import RoundCache

ROUNDS = st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), unique_by=lambda one: one[0]))


@given(ROUNDS)
def test_a_value_is_derived_where_its_inputs_differ_from_those_of_the_round_before(
    rounds: Sequence[Sequence[tuple[str, int]]],
) -> None:
    cache, before = RoundCache(), dict[str, int]()
    for inputs in rounds:
        cache.next_round()
        derived = set()
        for key, number in inputs:
            assert cache.sort("numbers").value(key, number, lambda: derived.add(key) or [number]) == [number]  # noqa: B023
        assert derived == {key for key, number in inputs if before.get(key) != number}
        before = dict(inputs)


def test_an_equal_value_is_the_object_of_the_round_before() -> None:
    cache, first = RoundCache(), [1]
    cache.sort("lists").same("a", first)
    cache.next_round()
    assert cache.sort("lists").same("a", [1]) is first
    assert cache.sort("lists").same("a", [2]) == [2]


def test_what_differs_from_before_is_derived_again_for_it_has_the_time_in_it() -> None:
    cache, times = RoundCache(), iter(range(10))

    def marked(before: str, says: str) -> str:
        text = before.partition(" ")[0]
        return cache.sort("texts").settled(
            "a", before, says, lambda: before if text == says else f"{says} {next(times)}"
        )

    assert marked("", "new") == "new 0"
    cache.next_round()
    assert marked("", "new") == "new 1"
    cache.next_round()
    assert marked("new 1", "new") == "new 1"
    cache.next_round()
    assert marked("new 1", "newer") == "newer 2"

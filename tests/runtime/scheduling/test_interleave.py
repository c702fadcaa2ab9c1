"""The interleave is exact: no run of choices is further from the weights than whole numbers must be."""

from fractions import Fraction
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.scheduling.interleave import Interleave

weights = st.lists(st.integers(1, 1000), min_size=1, max_size=16)


def choices(interleave: Interleave, count: int, indexes: range) -> list[int]:
    return [interleave.next(indexes) for _ in range(count)]


def deviations(chosen: list[int], index: int, share: Fraction) -> list[Fraction]:
    """Return the choices of an index less its share, after each choice and before the first."""
    return list(accumulate((int(one == index) - share for one in chosen), initial=Fraction(0)))


@given(weights, st.integers(1, 300))
def test_after_any_number_of_choices_an_index_has_its_share_within_the_bound(parts, count):
    chosen = choices(Interleave(parts), count, range(len(parts)))
    bound = 1 - Fraction(1, 2 * len(parts) - 2) if len(parts) > 1 else 0
    for index, weight in enumerate(parts):
        off = deviations(chosen, index, Fraction(weight, sum(parts)))
        assert max(map(abs, off)) <= bound
        # Any window is the difference of two beginnings.
        assert max(off) - min(off) <= 2 * bound


@given(st.integers(1, 999_999), st.integers(1, 400))
def test_of_two_weights_any_window_has_the_exact_number_rounded_up_or_down(weight, count):
    chosen = choices(Interleave([weight, 1_000_000 - weight]), count, range(2))
    off = deviations(chosen, 0, Fraction(weight, 1_000_000))
    assert max(off) - min(off) < 1


def test_it_repeats_with_the_sum_of_the_weights():
    interleave = Interleave([5, 3, 2])
    period = choices(interleave, 10, range(3))
    assert [period.count(index) for index in range(3)] == [5, 3, 2]
    assert interleave.credits == [0, 0, 0]
    assert choices(interleave, 10, range(3)) == period


def test_the_rarer_one_is_chosen_in_the_middle_of_its_period():
    assert choices(Interleave([3, 1]), 8, range(2)) == [0, 0, 1, 0, 0, 0, 1, 0]


@given(st.lists(st.tuples(st.integers(1, 999_999), st.integers(1, 60)), min_size=2, max_size=6))
def test_of_two_weights_that_change_the_shares_of_all_times_add_up(steps):
    """What one weight still owes, the next pays: the whole run is as exact as one with constant weights."""
    interleave = Interleave([1, 1])
    owed = Fraction(0)
    former = [0, 0]
    for weight, count in steps:
        interleave = Interleave([weight, 1_000_000 - weight], former)
        for _ in range(count):
            owed += Fraction(weight, 1_000_000) - int(interleave.next(range(2)) == 0)
            assert abs(owed) <= Fraction(1, 2)
        former = interleave.credits


@given(weights, st.data())
def test_only_those_that_may_be_chosen_are(parts, data):
    interleave = Interleave(parts)
    for _ in range(20):
        among = data.draw(st.lists(st.sampled_from(range(len(parts))), min_size=1, unique=True))
        assert interleave.next(among) in among


def test_an_index_without_a_weight_is_never_chosen():
    assert set(choices(Interleave([0, 7, 0]), 50, range(3))) == {1}

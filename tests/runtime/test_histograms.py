"""Durations and tokens in buckets: each in the right one, added up and made coarser without a loss."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.histograms import DURATION_BOUNDS, DurationHistogram, TokenHistogram

MS = 1_000_000
durations = st.lists(st.integers(0, 100_000 * MS))


def histogram_of(values: list[int]) -> DurationHistogram:
    histogram = DurationHistogram()
    for value in values:
        histogram.add(value)
    return histogram


def test_a_bound_belongs_to_its_own_bucket():
    histogram = histogram_of([MS, MS + 1, 60_000 * MS, 60_000 * MS + 1])
    at = DURATION_BOUNDS.index(MS)
    assert histogram.counts[at : at + 2] == [1, 1]
    assert histogram.counts[-2:] == [1, 1]
    assert histogram.ns == 2 * MS + 1 + 120_000 * MS + 1


def test_bounds_rise_and_are_close_where_budgets_lie():
    steps = list(pairwise(DURATION_BOUNDS))
    assert all(low < high for low, high in steps)
    assert all(high <= 2 * low for low, high in steps if MS <= low < 10_000 * MS)


@given(durations, durations)
def test_two_add_up_to_what_one_would_have_measured(some: list[int], others: list[int]):
    both, one = histogram_of(some).with_all(histogram_of(others)), histogram_of(some + others)
    assert (both.counts, both.ns) == (one.counts, one.ns)


@given(durations, st.sets(st.sampled_from(DURATION_BOUNDS)))
def test_coarser_buckets_count_as_if_they_had_been_there(values: list[int], bounds: set[int]):
    coarse = DurationHistogram(sorted(bounds))
    for value in values:
        coarse.add(value)
    assert histogram_of(values).counts_in(sorted(bounds)) == coarse.counts


def test_a_bound_of_tokens_belongs_to_its_own_bucket():
    tokens = TokenHistogram()
    for count in (0, 1, 2, 3, 1 << 18, (1 << 18) + 1):
        tokens.add(count)
    assert tokens.counts[:3] == [2, 1, 1]
    assert tokens.counts[-2:] == [1, 1]
    assert tokens.total == 7 + (1 << 19)

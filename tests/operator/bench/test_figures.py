"""Rates by usage, percentiles, and comparisons of several endpoints."""

import pytest

from argosy.bench.answers import Answer
from argosy.bench.budgets import NO_BUDGET, parse_budgets
from argosy.bench.comparison import Measured, comparisons, overall
from argosy.bench.figures import Latencies, Trial, percentiles, rates
from argosy.bench.plan import Extent, Level, TrialKey


def answer(begin: float, *arrivals: float, tokens: int) -> Answer:
    return Answer(begin, begin, list(arrivals), arrivals[-1], 10, tokens)


def test_a_chunk_has_its_part_of_the_usages_tokens() -> None:
    """Four tokens in two chunks: one chunk is before the time that is measured."""
    answers = [answer(0.0, 0.5, 2.0, tokens=4), answer(1.0, 2.5, 3.0, tokens=2), answer(5.0, 6.0, tokens=1)]
    amounts = rates(Trial(answers, Extent(1, 1, 1)), NO_BUDGET)
    assert amounts.tokens == pytest.approx((2 + 2) / 4)
    assert amounts.requests == pytest.approx(2 / 4)


def test_time_per_token_divides_by_tokens_and_gaps_are_those_of_chunks() -> None:
    latencies = Latencies.of([answer(0.0, 0.5, 0.75, 1.5, tokens=9), answer(1.0, 2.0, tokens=1)])
    assert latencies.per_token == [pytest.approx(1.0 / 8)]
    assert latencies.gaps == [0.25, 0.75]
    assert latencies.first_token == [0.5, 1.0]


def test_percentiles_of_nothing_are_none() -> None:
    assert percentiles([]) is None
    measured = percentiles([float(value) for value in range(101)])
    assert measured is not None
    assert (measured.p50, measured.p90, measured.p99, measured.mean) == (50, 90, 99, 50)


@pytest.mark.parametrize(
    ("text", "reason"), [("ttft=", "is no duration"), ("first=1s", "is no budget"), ("ttft", "is no")]
)
def test_a_wrong_budget_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_budgets([text])


def test_of_three_endpoints_the_crossover_is_that_of_the_best_at_either_end() -> None:
    """`a` is best at 1, `c` at 64; `b` is never best."""
    speeds = {"a": {1: 10.0, 8: 60.0, 64: 70.0}, "b": {1: 9.0, 8: 55.0, 64: 90.0}, "c": {1: 5.0, 8: 50.0, 64: 300.0}}
    measured = [
        Measured(TrialKey(Level(concurrency=level), repetition, index), Trial([], Extent(0, 0, 0)), rate * wobble)
        for index, rates_of in enumerate(speeds.values())
        for level, rate in rates_of.items()
        for repetition, wobble in enumerate((0.999, 1.001, 1.0))
    ]
    names = list(speeds)
    pairs = comparisons(names, measured, 0)
    assert [pair.endpoints for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    crossover = overall(names, pairs)
    assert crossover is not None
    assert (crossover.below, crossover.above, crossover.between) == ("a", "c", (8, 64))
    assert crossover == pairs[1].crossover
    assert pairs[1].verdict == f"a up to {crossover.concurrency:.1f} at once, c above"


def test_one_that_dominates_has_no_crossover() -> None:
    measured = [
        Measured(TrialKey(Level(concurrency=level), repetition, index), Trial([], Extent(0, 0, 0)), rate)
        for index, factor in enumerate((1.0, 1.2))
        for level in (1, 8)
        for repetition, rate in enumerate((level * factor, level * factor * 1.001))
    ]
    (pair,) = comparisons(["a", "b"], measured, 0)
    assert pair.crossover is None
    assert overall(["a", "b"], [pair]) is None
    assert pair.verdict == "b at every level at which they differ"

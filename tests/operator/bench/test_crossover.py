"""The crossover is where engines of known shape cross, and noise alone has none."""

from math import log
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.bench.crossover import LogRatio, crossing

SWEEP = (1, 2, 4, 8, 16, 32, 64)


def compiled(concurrency: float) -> float:
    """Return tokens/s of an engine with short steps and a batch of at most 16."""
    return min(concurrency, 16) / (0.004 + 0.0004 * min(concurrency, 16))


def dynamic(concurrency: float) -> float:
    """Return tokens/s of an engine with longer steps, whose batch grows."""
    return concurrency / (0.006 + 0.0002 * concurrency)


TRUE = 10.0
"""Where the two are equal: 0.004 + 0.0004 c = 0.006 + 0.0002 c."""


def measured(noise: float, repetitions: int, seed: int = 0) -> list[LogRatio]:
    random = Random(seed)
    return [
        LogRatio.of(level, [compiled(level) / dynamic(level) * random.gauss(1, noise) for _ in range(repetitions)])
        for level in SWEEP
    ]


def test_the_crossing_of_exact_curves() -> None:
    crossed = crossing(measured(0.0, 4))
    assert crossed is not None
    assert crossed.first_below
    assert SWEEP[crossed.index - 1] == 8
    assert crossed.concurrency == pytest.approx(TRUE, rel=0.03)
    assert crossed.confidence == 1.0
    assert crossed.low == pytest.approx(crossed.high)


def test_one_repetition_has_no_uncertainty() -> None:
    crossed = crossing(measured(0.0, 1))
    assert crossed is not None
    assert (crossed.low, crossed.high, crossed.confidence) == (None, None, None)


def test_the_interval_has_the_true_crossing_in_most_runs() -> None:
    within = [
        crossed.low <= TRUE <= crossed.high
        for seed in range(40)
        if (crossed := crossing(measured(0.01, 4, seed))) is not None
    ]
    assert len(within) >= 38
    assert sum(within) >= 0.85 * len(within)


def test_more_noise_makes_a_wider_interval() -> None:
    widths = [crossed.high - crossed.low for noise in (0.002, 0.02) if (crossed := crossing(measured(noise, 8)))]
    assert len(widths) == 2
    assert widths[0] < widths[1] / 2


def test_where_one_dominates_there_is_none() -> None:
    assert crossing([LogRatio.of(level, [1.1, 1.11, 1.09, 1.1]) for level in SWEEP]) is None


def test_two_equal_endpoints_rarely_cross() -> None:
    random = Random(5)
    crossed = [
        crossing([LogRatio.of(level, [random.gauss(1, 0.02) for _ in range(4)]) for level in SWEEP]) for _ in range(60)
    ]
    assert sum(point is not None for point in crossed) <= 15


def test_a_small_reversal_does_not_move_the_crossing() -> None:
    """The first endpoint is clearly better up to 4, a little worse at 2 by chance, and clearly worse from 16 on."""
    ratios = (1.3, 0.995, 1.3, 1.2, 0.8, 0.7, 0.7)
    crossed = crossing([LogRatio.of(level, [ratio]) for level, ratio in zip(SWEEP, ratios, strict=True)])
    assert crossed is not None
    assert 8 < crossed.concurrency < 16


def test_the_second_endpoint_may_be_better_below() -> None:
    crossed = crossing([LogRatio.of(1, [0.5]), LogRatio.of(4, [2.0])])
    assert crossed is not None
    assert not crossed.first_below
    assert crossed.concurrency == pytest.approx(2.0)


@given(st.lists(st.floats(0.2, 5.0), min_size=0, max_size=7))
def test_a_crossing_lies_between_levels_of_opposite_sign(ratios: list[float]) -> None:
    levels = [LogRatio.of(level, [ratio]) for level, ratio in zip(SWEEP, ratios, strict=False)]
    crossed = crossing(levels)
    if crossed is not None:
        below, above = levels[crossed.index - 1], levels[crossed.index]
        assert below.concurrency <= crossed.concurrency <= above.concurrency
        assert (below.mean > 0) == crossed.first_below == (above.mean < 0)


@pytest.mark.parametrize(("repetitions", "t"), [(2, 12.71), (4, 3.18), (18, 2.11), (30, 2.0)])
def test_the_interval_of_a_ratio_is_students(repetitions: int, t: float) -> None:
    low, high = LogRatio(8, log(1.5), 0.1, repetitions).interval()
    assert (log(high) - log(low)) / 2 == pytest.approx(t * 0.1)
    assert log(low) + log(high) == pytest.approx(2 * log(1.5))

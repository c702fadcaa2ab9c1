"""Wald's test: the numbers of requests that it needs, its error rates, and that more failures never look better."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.analysis.sequential import Decision, MeanTest, RateTest, bound

TEST = RateTest(0.001, 0.01, 0.95)


def exact(rate: float, test: RateTest = TEST) -> tuple[float, float, float]:
    """Return the mean number of samples until a decision, the probability that the rate is found unacceptable, and the
    mean number of samples where it is found acceptable: exactly, by the distribution of the failures so far.
    """
    alive, samples = np.array([1.0]), 0
    mean = convicted = cleared = cleared_samples = 0.0
    while alive.sum() > 1e-9:
        samples += 1
        mean += alive.sum()
        counts = np.append(alive * (1 - rate), 0.0) + np.append(0.0, alive * rate)
        ratios = np.array([test.log_ratio(failures, samples) for failures in (0, 1)])
        ratios = ratios[0] + np.arange(len(counts)) * (ratios[1] - ratios[0])
        bad, good = ratios >= bound(test.confidence), ratios <= -bound(test.confidence)
        convicted += counts[bad].sum()
        cleared += counts[good].sum()
        cleared_samples += samples * counts[good].sum()
        alive = np.where(bad | good, 0.0, counts)[: np.flatnonzero(~bad).max() + 1]
    return mean, convicted, cleared_samples / cleared


def test_247_requests_convict_a_version_that_fails_one_percent():
    mean, convicted, _ = exact(0.01)
    assert round(mean) == 247
    assert convicted == pytest.approx(0.95, abs=0.005)


def test_371_requests_clear_a_version_that_fails_one_of_two_thousand():
    _, convicted, cleared = exact(0.0005)
    assert round(cleared) == pytest.approx(371, abs=1)
    assert convicted < 0.01


def test_the_acceptable_rate_is_convicted_no_more_often_than_the_confidence_allows():
    assert exact(0.001)[1] <= 0.05 / 0.95


def test_a_hundred_requests_without_a_failure_prove_nothing():
    assert TEST.decide(0, 100) is Decision.OPEN
    assert TEST.decide(0, 325) is Decision.OPEN
    assert TEST.decide(0, 326) is Decision.ACCEPTABLE
    assert TEST.fewest_samples == 326


tests = st.tuples(st.floats(1e-5, 0.4), st.floats(1.5, 20), st.floats(0.6, 0.999)).map(
    lambda numbers: RateTest(numbers[0], min(0.9, numbers[0] * numbers[1]), numbers[2])
)
ORDER = [Decision.ACCEPTABLE, Decision.OPEN, Decision.UNACCEPTABLE]


@given(tests, st.integers(0, 500), st.integers(0, 5000))
def test_more_failures_never_look_better_and_more_successes_never_worse(test, failures, others):
    now = ORDER.index(test.decide(failures, failures + others))
    assert ORDER.index(test.decide(failures + 1, failures + others + 1)) >= now
    assert ORDER.index(test.decide(failures + 1, failures + others)) >= now
    assert ORDER.index(test.decide(failures, failures + others + 1)) <= now


def test_a_mean_is_decided_by_its_distance_from_the_middle():
    test = MeanTest(0.2, 0.4, 0.95)
    assert test.decide(0.3, 0.01) is Decision.OPEN
    assert test.decide(0.4, 0.0001) is Decision.UNACCEPTABLE
    assert test.decide(0.0, 0.01) is Decision.ACCEPTABLE
    assert [test.decide(mean, 0.0) for mean in (0.2, 0.31)] == [Decision.ACCEPTABLE, Decision.UNACCEPTABLE]


def test_a_higher_confidence_needs_more():
    assert bound(0.99) > bound(0.95) > bound(0.6) > 0

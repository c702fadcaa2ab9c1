"""Crossovers that traffic shows, in virtual time: with how many requests, and never from silence."""

from collections.abc import Callable
from random import Random

import pytest

from argosy_runtime.scheduling.variants.crossovers import FEWEST_REQUESTS, ObservedCrossovers

MS, MINUTE = 1_000_000, 60_000_000_000
Curve = Callable[[int], float]


def low(in_flight: int) -> float:
    """Return seconds a token: fast alone, slower with each other request."""
    return 0.010 + 0.002 * in_flight


def high(in_flight: int) -> float:
    """Return seconds a token: equal to `low` at 8 in flight."""
    return 0.022 + 0.0005 * in_flight


def traffic(
    both: range, requests: int = 50, noise: float = 0.1, curves: tuple[Curve, Curve] = (low, high), seed: int = 1
) -> ObservedCrossovers:
    """Return what is observed where either variant answered so many requests at each of these levels."""
    observed, random = ObservedCrossovers(2), Random(seed)
    for in_flight in both:
        for variant, curve in enumerate(curves):
            for _ in range(requests):
                tokens = random.randrange(20, 200)
                seconds = curve(in_flight) * tokens * (1 + random.uniform(-noise, noise))
                observed.add(variant, in_flight, round(seconds * 1e9), tokens, MINUTE)
    return observed


def test_the_crossover_is_where_the_curves_meet():
    observed = traffic(range(4, 17)).observed(0, 8, MINUTE)
    assert observed is not None
    assert observed.fits
    assert observed.low is not None
    assert observed.high is not None
    assert 6.5 <= observed.low < observed.high <= 9.6
    assert observed.requests == 13 * 50


@pytest.mark.parametrize(
    ("limit", "both", "sides", "fits"),
    [
        (8, range(7, 9), None, True),
        (16, range(14, 17), (False, True), False),
        (4, range(4, 6), (True, False), False),
        (4, range(3, 5), (True, False), True),
        (None, range(14, 17), (False, True), None),
    ],
    ids=["it fits", "it is too high", "it is too low", "nothing above it was seen", "none is declared"],
)
def test_a_declared_crossover_is_judged_by_the_levels_next_to_it(limit, both, sides, fits):
    observed = traffic(both).observed(0, limit, MINUTE)
    assert observed is not None
    assert observed.fits is fits
    assert sides in ((observed.low is not None, observed.high is not None), None)


def test_too_few_requests_are_not_compared():
    assert traffic(range(14, 15), requests=FEWEST_REQUESTS - 1).observed(0, 8, MINUTE) is None
    assert traffic(range(14, 15), requests=FEWEST_REQUESTS).observed(0, 8, MINUTE) is not None


def test_levels_that_only_one_variant_had_are_not_compared():
    observed = ObservedCrossovers(2)
    for _ in range(100):
        observed.add(0, 4, 100 * MS, 10, 0)
        observed.add(1, 16, 300 * MS, 10, 0)
    assert observed.observed(0, 8, 0) is None
    assert observed.observed(1, None, 0) is None, "there is no next variant"


def test_what_is_long_ago_counts_for_nothing():
    observed = traffic(range(14, 17))
    assert observed.observed(0, 16, MINUTE) is not None
    assert observed.observed(0, 16, 6 * 60 * MINUTE) is None


def test_traffic_that_changes_is_followed():
    observed, now = ObservedCrossovers(2), 0
    for step, ratio in enumerate((0.8, 1.25)):
        now = (step * 5 * 60 + 1) * MINUTE
        for _ in range(200):
            observed.add(0, 8, 100 * MS, 10, now)
            observed.add(1, 8, round(100 * MS * ratio), 10, now)
        judged = observed.observed(0, 8, now)
        assert judged is not None
        assert judged.fits is (ratio > 1)


def test_noise_contradicts_nothing():
    judged = [
        traffic(range(7, 10), noise=0.5, curves=(low, low), seed=seed).observed(0, 8, MINUTE) for seed in range(40)
    ]
    assert sum(one is not None and one.fits is False for one in judged) <= 1


def test_requests_without_work_or_duration_do_not_count():
    observed = ObservedCrossovers(2)
    for _ in range(100):
        for variant in (0, 1):
            observed.add(variant, 8, 100 * MS, 0, 0)
            observed.add(variant, 8, 0, 10, 0)
            observed.add(variant, 0.5, 100 * MS, 10, 0)
    assert observed.observed(0, 8, 0) is None

"""Forecasts of arrivals: the level within its stated confidence, steps, growth, and chance."""

import numpy as np
import pytest

from argosy.autoscaling.forecast import Forecast
from argosy.autoscaling.settings import CONFIDENCE, MEMORY_S, MOST_GROWTH

EVERY_S, AHEAD_S = 5.0, 30.0


def drawn(rates: list[float], seed: int) -> list[Forecast]:
    """Return the forecasts of a Poisson process by its rate at each reading."""
    random = np.random.default_rng(seed)
    return followed([float(count) / EVERY_S for count in random.poisson(np.array(rates) * EVERY_S)])


def followed(readings: list[float]) -> list[Forecast]:
    forecasts = [Forecast().after(readings[0], EVERY_S)]
    for reading in readings[1:]:
        forecasts.append(forecasts[-1].after(reading, EVERY_S))
    return forecasts


@pytest.mark.parametrize("rate", [2.0, 21.0, 150.0, 1000.0])
def test_a_constant_load_is_within_the_stated_confidence(rate: float) -> None:
    settled = [forecast for seed in range(10) for forecast in drawn([rate] * 300, seed)[60:]]
    off = np.array([(forecast.level - rate) / forecast.error for forecast in settled])
    assert np.mean(np.abs(off) <= CONFIDENCE) > 0.99
    errors = np.array([forecast.error for forecast in settled])
    assert np.median(errors) < 1.3 * np.sqrt(rate / MEMORY_S)


def test_a_constant_load_is_not_expected_to_grow() -> None:
    grown = [f.growth > 0 for seed in range(20) for f in drawn([20.0] * 300, seed)[20:]]
    assert np.mean(grown) < 0.001


@pytest.mark.parametrize(("before", "after"), [(20.0, 100.0), (100.0, 300.0), (100.0, 20.0), (50.0, 0.0)])
def test_a_step_is_followed_within_two_readings_and_is_no_growth(before: float, after: float) -> None:
    """Also where it comes in the middle of a reading, so that two rise."""
    for seed in range(20):
        between = before + (after - before) * np.random.default_rng(seed).random()
        forecasts = drawn([before] * 60 + [between] + [after] * 20, seed)[61:]
        assert forecasts[1].level == pytest.approx(after, rel=0.5, abs=5.0)
        assert forecasts[-1].level == pytest.approx(after, rel=0.25, abs=1.0)
        assert all(forecast.growth == 0 for forecast in forecasts)


def test_a_steady_climb_is_expected_to_go_on_within_its_limit() -> None:
    forecasts = followed([20.0 + 2 * second for second in range(0, 600, 5)])
    last = forecasts[-1]
    assert last.growth == pytest.approx(2.0, rel=0.05)
    assert last.expected(AHEAD_S) == pytest.approx(20 + 2 * (595 + AHEAD_S), rel=0.1)
    assert last.expected(1e6) == pytest.approx((1 + MOST_GROWTH) * last.level)


def test_a_load_that_varies_more_than_chance_has_a_wider_interval() -> None:
    random = np.random.default_rng(1)
    calm = followed([float(count) / EVERY_S for count in random.poisson(100, 200)])[-1]
    wild = followed([float(count) / EVERY_S for count in random.negative_binomial(10, 10 / 110, 200)])[-1]
    assert wild.error > 2 * calm.error


def test_no_time_changes_nothing_and_no_load_stays_no_load() -> None:
    before = Forecast().after(5.0, EVERY_S)
    assert before.after(7.0, 0.0) is before
    assert followed([0.0] * 50)[-1].level == 0.0
    assert Forecast().expected(30.0) == 0.0

"""What comes and what will: the level is calm while the load is, and quick once it changes."""

import numpy as np
import pytest

from argosy.autoscaling.learning.demand import MOST_GROWTH, Demand

EVERY_S = 5.0
AHEAD_S = 30.0
DRAWS = 200


def seen(rates: list[float], seed: int = 1) -> list[Demand]:
    """After each reading of arrivals that come at these rates by chance."""
    random = np.random.default_rng(seed)
    return followed([float(each) / EVERY_S for each in random.poisson(np.array(rates) * EVERY_S)])


def followed(readings: list[float]) -> list[Demand]:
    found = [Demand.of(readings[0])]
    for each in readings[1:]:
        found.append(found[-1].after(each, EVERY_S, EVERY_S))
    return found


@pytest.mark.parametrize("rate", [2.0, 21.0, 150.0, 1000.0])
def test_of_a_constant_load_the_level_strays_little(rate: float) -> None:
    draws = [seen([rate] * 300, seed)[60:] for seed in range(10)]
    late = [each for draw in draws for each in draw]
    off = np.array([each.level / rate - 1 for each in late])
    assert np.sqrt((off**2).mean()) < 0.5 / np.sqrt(rate * EVERY_S)
    assert np.mean([each.excess for each in late]) < 1.5
    assert np.mean([each.expected(AHEAD_S, EVERY_S) > each.level for each in late]) < 0.01


def test_of_a_constant_load_chance_is_seldom_taken_for_a_change() -> None:
    """In forty minutes of readings hardly once in four."""
    changes = [sum(each.since_s == 0 for each in seen([20.0] * 720, seed)[240:]) for seed in range(60)]
    assert sum(changes) < 60 / 4


def test_a_step_is_followed_in_the_second_reading_and_seldom_taken_for_a_slope() -> None:
    """Also where it comes in the middle of a reading, so that two rise."""
    draws, slopes = np.random.default_rng(3), 0
    for seed in range(DRAWS):
        rate, high = draws.uniform(5, 50), draws.uniform(100, 500)
        between = draws.uniform(rate, high)
        found = seen([rate] * 100 + [between] + [high] * 4, seed)[101:]
        assert found[1].level == pytest.approx(high, rel=0.5)
        slopes += any(each.expected(AHEAD_S, EVERY_S) > each.level for each in found)
    assert slopes < 0.15 * DRAWS


def test_a_crowd_that_grows_for_a_minute_is_expected_before_it_is_there() -> None:
    rises = [7.0 + 5.0 * step for step in range(1, 13)]
    found = followed([7.0] * 60 + rises)[60:]
    expected = [each.expected(AHEAD_S, EVERY_S) for each in found]
    assert max(expected[:4]) > 40 > 1.4 * rises[3]
    assert all(each.expected(AHEAD_S, EVERY_S) <= (1 + MOST_GROWTH) * each.level for each in found)
    ended = followed([7.0] * 60 + rises + [rises[-1]] * 4)[-1]
    assert ended.expected(AHEAD_S, EVERY_S) == pytest.approx(rises[-1], rel=0.1)


def test_what_falls_or_stands_at_nothing_is_expected_as_it_is() -> None:
    for each in (followed([50.0] * 30 + [0.0] * 60)[-1], followed([0.0] * 30)[-1]):
        assert each.level == pytest.approx(0.0, abs=0.5)
        assert each.expected(AHEAD_S, EVERY_S) == each.level


def test_a_slope_is_no_variation() -> None:
    falling = seen([900.0 - 2 * EVERY_S * step for step in range(60)])
    assert max(each.excess for each in falling) < 3
    assert falling[-1].level == pytest.approx(310, rel=0.1)


def test_of_the_same_reading_twice_nothing_is_learnt() -> None:
    known = Demand.of(5.0)
    assert known.after(9.0, 0.0, EVERY_S) is known

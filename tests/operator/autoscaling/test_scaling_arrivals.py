"""What has to be served steadily so that nobody waits for too long."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.autoscaling.learning.arrivals import NOTHING, Arrivals

READING_S = 5.0
QUIET = [0.0] * 12
RATES = st.lists(st.floats(0, 1000), min_size=1, max_size=12)
DELAYS = st.floats(0.1, 60)


def seen(rates: list[float]) -> Arrivals:
    """After a quiet minute."""
    found = NOTHING
    for each in QUIET:
        found = found.after(each, READING_S)
    for rate in rates:
        found = found.after(rate, READING_S)
    return found


def kept_for(rates: list[float], delay: float) -> float:
    """The most that was asked for after any of the readings."""
    return max(seen(rates[: count + 1]).sustained(delay) for count in range(len(rates)))


def longest_wait(rates: list[float], served: float) -> float:
    """Seconds that the last of a reading's requests wait where so many a second are served, in order."""
    waiting = longest = 0.0
    for rate in rates:
        waiting = max(0.0, waiting + (rate - served) * READING_S)
        longest = max(longest, waiting / served)
    return longest


@given(RATES, DELAYS)
def test_served_so_fast_nobody_waits_for_longer_than_that(rates: list[float], delay: float) -> None:
    served = kept_for(rates, delay)
    assert served <= max(rates) * (1 + 1e-9)
    if served > 1e-6:
        assert longest_wait(rates, served) <= delay * (1 + 1e-6)


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=6), st.floats(0.1, 25))
def test_served_more_slowly_somebody_does(rates: list[float], delay: float) -> None:
    assert longest_wait(rates, 0.99 * kept_for(rates, delay)) > 0.99 * delay


def test_what_lasts_is_served_as_fast_as_it_comes() -> None:
    assert seen([8.0] * 12).sustained(30) == pytest.approx(8.0)
    assert seen([8.0] * 2).sustained(30) == pytest.approx(2.0)


def test_of_what_came_more_than_a_minute_ago_nothing_is_known() -> None:
    assert seen([1000.0, *[8.0] * 12]).sustained(30) == pytest.approx(8.0)
    assert NOTHING.sustained(30) == inf
    assert NOTHING.after(8.0, 0.0) is NOTHING

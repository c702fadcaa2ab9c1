"""A wait for idleness, by counts of requests and times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_common.idle import IdlePeriod, IdleWait

PERIOD = IdlePeriod(5.0, 60.0)


def test_it_is_idle_once_no_request_has_come_for_the_period() -> None:
    wait = IdleWait(PERIOD, requests=7, now=100.0)
    assert not wait.reached(7, 104.9)
    assert wait.reached(7, 105.0)


def test_a_request_restarts_the_period() -> None:
    wait = IdleWait(PERIOD, requests=0, now=0.0)
    assert not wait.reached(1, 4.0)
    assert not wait.reached(1, 8.9)
    assert wait.reached(1, 9.0)


def test_endless_requests_end_at_the_limit() -> None:
    wait = IdleWait(PERIOD, requests=0, now=0.0)
    assert [wait.reached(at, float(at)) for at in range(1, 61)] == [False] * 59 + [True]


def test_what_has_been_silent_before_needs_to_be_so_only_for_the_rest() -> None:
    assert IdleWait(PERIOD, requests=3, now=50.0, silent_s=5.0).reached(3, 50.0)
    wait = IdleWait(PERIOD, requests=3, now=50.0, silent_s=4.0)
    assert not wait.reached(3, 50.9)
    assert wait.reached(3, 51.0)


def test_no_period_is_idle_at_once_whatever_comes() -> None:
    assert IdleWait(IdlePeriod(0.0, 60.0), requests=0, now=0.0).reached(9, 0.0)


def test_an_open_request_keeps_it_and_the_period_begins_with_its_answer() -> None:
    wait = IdleWait(PERIOD, requests=1, now=0.0)
    assert not any(wait.reached(1, float(at), is_open=True) for at in range(1, 31))
    assert not wait.reached(1, 34.9)
    assert wait.reached(1, 35.0)


def test_an_expected_request_keeps_it_and_restarts_nothing() -> None:
    wait = IdleWait(PERIOD, requests=1, now=0.0)
    assert not wait.reached(1, 20.0, is_expected=True)
    assert wait.reached(1, 20.1)


def test_neither_keeps_it_beyond_the_limit_or_without_a_period() -> None:
    assert IdleWait(PERIOD, requests=1, now=0.0).reached(1, 60.0, is_open=True, is_expected=True)
    at_once = IdleWait(IdlePeriod(0.0, 60.0), requests=1, now=0.0)
    assert at_once.reached(1, 0.0, is_open=True, is_expected=True)


def test_counters_that_restart_are_requests_too() -> None:
    wait = IdleWait(PERIOD, requests=900, now=0.0)
    assert not wait.reached(1, 5.0)


@given(st.lists(st.tuples(st.floats(0.01, 20.0), st.integers(0, 3)), min_size=1, max_size=50))
def test_it_never_ends_within_the_period_of_a_request_before_its_limit(steps: list[tuple[float, int]]) -> None:
    now, requests, newest = 0.0, 0, 0.0
    wait = IdleWait(PERIOD, requests, now)
    for pause, more in steps:
        now, requests = now + pause, requests + more
        newest = now if more else newest
        assert wait.reached(requests, now) == (now - newest >= PERIOD.period_s or now >= PERIOD.limit_s)


@pytest.mark.parametrize(("period", "limit"), [(-1.0, 1.0), (1.0, -1.0), (float("nan"), 1.0), (1.0, float("nan"))])
def test_times_below_zero_are_refused(period: float, limit: float) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        IdlePeriod(period, limit)

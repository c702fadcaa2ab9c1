"""Keepalive as a machine without a clock."""

import pytest

from argosy_runtime.http2.conduct import PingStrikes
from argosy_runtime.http2.keepalive import NEVER, Action, KeepAlive, KeepAliveRules

RULES = KeepAliveRules(time=100.0, timeout=20.0, handshake=5.0, unfinished=50.0, idle=400.0)


def looks(keepalive: KeepAlive, until: float, busy: bool, now: float = 0.0) -> list[tuple[float, Action]]:
    """Return each action with its time, where each look comes exactly when it is due."""
    done: list[tuple[float, Action]] = []
    while now <= until:
        action, due = keepalive.check(now, True, None, busy)
        if action is not Action.NOTHING:
            done.append((now, action))
        if action is Action.GIVE_UP or due == NEVER:
            break
        assert due > now
        now = due
    return done


def test_a_silent_client_with_requests_is_pinged_and_then_abandoned() -> None:
    assert looks(KeepAlive(RULES, 0.0), 120.0, busy=True) == [(100.0, Action.PING), (120.0, Action.GIVE_UP)]


def test_a_client_that_answers_stays_connected() -> None:
    keepalive = KeepAlive(RULES, 0.0)
    assert looks(keepalive, 110.0, busy=True) == [(100.0, Action.PING)]
    keepalive.heard(111.0)
    assert looks(keepalive, 220.0, busy=True, now=111.0) == [(211.0, Action.PING)]


def test_a_client_without_requests_is_sent_away_without_a_ping() -> None:
    assert looks(KeepAlive(RULES, 0.0), 500.0, busy=False) == [(400.0, Action.SEND_AWAY)]


def test_where_permitted_it_is_pinged_too() -> None:
    rules = KeepAliveRules(time=100.0, permit_without_calls=True)
    assert looks(KeepAlive(rules, 0.0), 110.0, busy=False) == [(100.0, Action.PING)]


def test_an_old_connection_is_sent_away_and_abandoned_after_its_grace() -> None:
    rules = KeepAliveRules(max_age=50.0, max_age_grace=10.0)
    assert looks(KeepAlive(rules, 0.0), 70.0, busy=True) == [(50.0, Action.SEND_AWAY), (60.0, Action.GIVE_UP)]


def test_a_client_that_does_not_begin_is_abandoned() -> None:
    keepalive = KeepAlive(RULES, 0.0)
    assert keepalive.check(0.0, False, None, False) == (Action.NOTHING, 5.0)
    assert keepalive.check(5.0, False, None, False)[0] is Action.GIVE_UP


def test_a_frame_that_does_not_end_is_distinguished_from_many_that_do() -> None:
    keepalive = KeepAlive(RULES, 0.0)
    for turn in range(10):
        now = 25.0 * turn
        keepalive.heard(now)
        assert keepalive.check(now, True, (0, turn + 1), True)[0] is Action.NOTHING
    for now in (250.0, 275.0):
        keepalive.heard(now)
        assert keepalive.check(now, True, (0, 11), True)[0] is Action.NOTHING
    assert keepalive.check(300.0, True, (0, 11), True)[0] is Action.GIVE_UP


@pytest.mark.parametrize(("has_streams", "allowed"), [(True, 2), (False, 2)])
def test_pings_strike_until_something_is_sent(has_streams: bool, allowed: int) -> None:
    strikes = PingStrikes(KeepAliveRules(min_ping_interval=10.0, max_ping_strikes=allowed))
    assert [strikes.is_too_many(now, has_streams) for now in (0.0, 1.0, 2.0, 3.0)] == [False, False, False, True]
    strikes.forgive()
    assert not strikes.is_too_many(4.0, has_streams)


def test_pings_in_their_time_do_not_strike() -> None:
    strikes = PingStrikes(KeepAliveRules(min_ping_interval=10.0, max_ping_strikes=1))
    assert not any(strikes.is_too_many(now, True) for now in (0.0, 10.0, 20.0, 30.0))
    assert [strikes.is_too_many(now, False) for now in (40.0, 50.0)] == [False, True]


def test_a_client_that_takes_nothing_more_is_cut_off() -> None:
    rules = KeepAliveRules(unread=60.0)
    keepalive = KeepAlive(rules, 0.0)
    for now, unread in ((0.0, 900), (30.0, 900), (50.0, 800), (80.0, 800), (109.0, 850)):
        keepalive.reads(now, unread)
        assert keepalive.check(now, True, None, True)[0] is Action.NOTHING
    assert keepalive.check(109.0, True, None, True)[1] == 110.0
    assert keepalive.check(110.0, True, None, True)[0] is Action.CUT


def test_a_client_that_takes_all_in_the_end_is_not_cut_off() -> None:
    keepalive = KeepAlive(KeepAliveRules(unread=60.0), 0.0)
    keepalive.reads(0.0, 900)
    keepalive.reads(59.0, 0)
    assert keepalive.check(100.0, True, None, True)[0] is Action.NOTHING


def test_what_a_client_reads_is_a_sign_of_life() -> None:
    keepalive = KeepAlive(KeepAliveRules(time=100.0, unread=1000.0), 0.0)
    keepalive.reads(0.0, 900)
    keepalive.reads(90.0, 800)
    assert keepalive.check(100.0, True, None, True)[0] is Action.NOTHING
    keepalive.reads(150.0, 800)
    assert keepalive.check(190.0, True, None, True)[0] is Action.PING

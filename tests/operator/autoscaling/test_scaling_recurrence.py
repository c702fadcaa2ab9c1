"""Loads that leave and come back: at equal intervals, within the window, or not at all."""

from dataclasses import replace
from datetime import datetime, timedelta

from tests.operator.autoscaling.loads import POLICY, START, Member

from argosy.api.conditions import Reason
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.learning.recurrence import Recurrence
from argosy.autoscaling.policy import Pace

EVERY_S = 1800


def came(*minutes: float) -> Recurrence:
    found = Recurrence()
    for each in minutes:
        for second in (0, 30):
            found = found.after(START + timedelta(minutes=each, seconds=second), True, 40.0)
    return found


def test_what_came_four_times_at_equal_intervals_is_expected_again() -> None:
    found = came(0, 30, 60.2, 90)
    before, begins, late = (START + timedelta(minutes=each) for each in (115, 119.6, 124))
    assert [found.expected(each, 30.0) for each in (before, begins, late)] == [0.0, 40.0, 0.0]


def test_fewer_or_uneven_ones_tell_nothing() -> None:
    for found, begins in ((came(0, 30, 60), 90), (came(0, 30, 75, 90), 120)):
        at = START + timedelta(minutes=begins)
        assert found.expected(at, 30.0) == 0.0
        assert not found.is_over(at)


def test_requests_shortly_after_each_other_are_one_load() -> None:
    assert len(came(0, 0.5, 1.0, 2.0).starts) == 1


def test_replicas_are_there_before_a_load_that_a_timer_sends() -> None:
    policy = replace(POLICY, bounds=replace(POLICY.bounds, min_replicas=0), pace=Pace(60, 60, idle_s=300), startup_s=30)
    member = Member(policy, Allocation(1))
    for _ in range(4):
        if not member.allocation.replicas:
            member.step(None, held=50)
        member.under(900, 120)
        end = member.now + timedelta(seconds=EVERY_S - 120 - 60)
        quiet(member, end)
        assert member.allocation.replicas == 0
        quiet(member, end + timedelta(seconds=55))
    assert member.allocation.replicas > 2
    woken = next(each for each in reversed(member.decisions) if each.reason is Reason.SCALED_UP)
    assert "at equal intervals" in woken.message


def quiet(member: Member, end: datetime) -> None:
    """Nobody asks until then; where there is no replica nothing is measured."""
    while member.now < end:
        if member.allocation.replicas:
            member.under(0, 5, running=0.0, pending=0.0)
        else:
            member.step(None)

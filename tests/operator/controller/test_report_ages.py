"""A report is as old as the time since the operator saw it change; clocks of others do not count."""

from datetime import UTC, datetime, timedelta

from argosy.controller.rounds.report_expiry import EXPIRY, ReportExpiry
from argosy.planning.facts import ServerReport

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def report(written_at: int) -> ServerReport:
    return ServerReport("p-0", True, written_at=written_at)


def expired(ages: ReportExpiry, written_at: int, now: datetime) -> bool:
    (result,) = ages.marked([report(written_at)], now)
    return result.expired


def test_a_report_expires_when_nothing_newer_has_come_for_long() -> None:
    ages = ReportExpiry().after([report(5)], NOON)
    assert ages.next_expiry(NOON) == NOON + EXPIRY
    overdue = NOON + EXPIRY
    again = ages.after([report(5)], overdue)
    assert not expired(again, 5, overdue - timedelta(seconds=1))
    assert expired(again, 5, overdue)
    assert again.next_expiry(overdue) is None


def test_every_write_makes_it_young_again_whatever_its_clock_says() -> None:
    now = NOON
    ages = ReportExpiry()
    for written_at in (9_000_000_000, 5, 7):
        ages = ages.after([report(written_at)], now)
        assert not expired(ages, written_at, now)
        now += EXPIRY
    assert expired(ages, 7, now)


def test_an_agent_that_says_no_time_and_one_that_is_gone_have_no_age() -> None:
    ages = ReportExpiry().after([report(0)], NOON)
    assert not expired(ages.after([report(0)], NOON + 9 * EXPIRY), 0, NOON + 9 * EXPIRY)
    assert ages.after([report(5)], NOON).after([], NOON).seen == {}

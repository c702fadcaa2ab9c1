"""Groups whose move failed stay, twice as long each time, until their spec changes or that is long ago."""

from datetime import UTC, datetime, timedelta

from argosy.api.consolidationstatus import ConsolidationMove, FailedMove
from argosy.planning.consolidation.failures import staying, still_failed, with_failures

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOVE = ConsolidationMove(name="m", from_server="p-1", to_server="p-0")
REVISIONS = {"m": "r1"}


def failed(times: int) -> tuple[FailedMove, ...]:
    """Return what is known after so many failures of one move, all of them now."""
    result: tuple[FailedMove, ...] = ()
    for _ in range(times):
        result = with_failures(result, [MOVE], {"p-0": "a"}, REVISIONS, NOW)
    return result


def stays_until(times: int) -> timedelta:
    """Return for how long the group stays after so many failures."""
    (one,) = failed(times)
    assert (one.failures, one.to_node, one.revision) == (times, "a", "r1")
    return datetime.fromisoformat(one.until) - NOW


def test_failures_double_the_stay_up_to_a_day() -> None:
    assert [stays_until(times) / timedelta(hours=1) for times in (1, 2, 3, 4, 5, 50)] == [2, 4, 8, 16, 24, 24]
    assert staying(failed(1), NOW + timedelta(hours=2) - timedelta(seconds=1)) == {"m"}
    assert staying(failed(1), NOW + timedelta(hours=2)) == frozenset()


def test_another_spec_may_move_at_once_and_so_may_what_failed_long_ago() -> None:
    assert still_failed(failed(1), REVISIONS, NOW + timedelta(hours=40)) == failed(1)
    assert still_failed(failed(1), {"m": "r2"}, NOW) == ()
    assert still_failed(failed(1), {}, NOW) == ()
    assert still_failed(failed(1), REVISIONS, NOW + timedelta(hours=50)) == ()


def test_the_last_hundred_failures_are_retained() -> None:
    moves = [ConsolidationMove(name=f"m{at}", from_server="p-1", to_server="p-0") for at in range(150)]
    names = [one.name for one in with_failures((), moves, {}, {}, NOW)]
    assert names == [f"m{at}" for at in range(50, 150)]

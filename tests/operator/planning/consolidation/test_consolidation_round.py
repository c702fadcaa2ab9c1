"""The round of a pool's consolidation: rest, budget, pauses after failures, in virtual time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.api.consolidationstatus import ConsolidationRecord, ConsolidationStatus
from argosy.api.pool.packing import Packing
from argosy.api.values.times import timestamp
from argosy.planning.consolidation.moves import Move, Step
from argosy.planning.consolidation.pool_round import HOUR, PoolConsolidation, PoolRound
from argosy.planning.consolidation.progress import Progress
from argosy.planning.consolidation.search import StepLimits

GIB = 1 << 30
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(minutes=10)
STEP = Step("p-1", "b", 1, (Move("m", "p-1", "b", "p-0", "a", {"m": (0,)}, 10 * GIB),), 1)
MOVING = STEP.moves[0].described


def decided(
    mode: str = "Auto",
    before: dict[str, Any] | None = None,
    progress: Progress | None = None,
    unrest: str = "",
    *,
    changed: bool = False,
    steps: Sequence[Step] = (STEP,),
    searches: list[StepLimits] | None = None,
    **packing: Any,
) -> PoolConsolidation:
    """Return the decision on a pool that was at rest for ten minutes, unless `before` says otherwise."""
    settings = Packing.model_validate({"consolidate": mode, **packing})
    status = ConsolidationStatus.model_validate({"stable_since": timestamp(LONG_AGO), **(before or {})})

    def find(limits: StepLimits) -> tuple[Step, ...]:
        if searches is not None:
            searches.append(limits)
        return tuple(steps)

    return PoolRound(settings, status, progress or Progress(), unrest, changed, NOW).decide(find)


def test_a_pool_is_searched_once_it_was_at_rest_for_long_enough() -> None:
    fresh = decided(before={"stable_since": ""})
    assert (fresh.begins, fresh.wake) == ((), NOW + timedelta(minutes=1))
    assert fresh.status.stable_since == timestamp(NOW)
    assert "at rest for 1m" in fresh.status.message
    assert decided(before={"stable_since": timestamp(NOW - timedelta(seconds=59))}).begins == ()
    assert decided(before={"stable_since": timestamp(NOW - timedelta(seconds=60))}).begins == STEP.moves
    assert decided(before={"stable_since": ""}, consolidateAfter="0s").begins == STEP.moves


def test_recommend_names_what_auto_begins() -> None:
    auto, named = decided("Auto"), decided("Recommend")
    assert (named.begins, named.status.moving) == ((), ())
    assert auto.begins == STEP.moves
    assert auto.status.moving == named.status.moves == (MOVING,)
    assert (named.status.gpus, named.status.bytes) == (1, 10 * GIB)
    assert named.status.message == (
        "1 GPU would come free if 1 replica (10 GiB) left p-1 on b; to move them, set spec.packing.consolidate to Auto"
    )
    assert named.wake == NOW + HOUR


def test_a_busy_pool_is_not_searched_and_recommends_nothing() -> None:
    searches: list[StepLimits] = []
    busy = decided(before={"gpus": 1, "moves": (MOVING,)}, unrest="m has no place", searches=searches)
    assert (searches, busy.begins, busy.wake, busy.status.gpus, busy.status.moves) == ([], (), None, 0, ())
    assert busy.status.message == "nothing is searched for: m has no place"
    assert busy.status.stable_since == ""


def test_it_searches_again_after_an_hour_or_when_the_spec_changes() -> None:
    later = {"next_search": timestamp(NOW + timedelta(minutes=1)), "message": "as found"}
    waits = decided("Recommend", later)
    assert (waits.status.message, waits.wake) == ("as found", NOW + timedelta(minutes=1))
    assert decided("Auto", later, changed=True).begins == STEP.moves
    assert decided("Recommend", {"next_search": timestamp(NOW)}).wake == NOW + HOUR
    nothing = decided(steps=())
    assert (nothing.wake, nothing.status.gpus) == (NOW + HOUR, 0)
    assert nothing.status.message == "no GPU would come free by moving replicas"


@pytest.mark.parametrize("budget", [{"movesPerHour": 2}, {"bytesPerHour": "25Gi"}])
def test_the_budget_of_an_hour_is_respected(budget: dict[str, Any]) -> None:
    spent = [
        ConsolidationRecord(time=timestamp(NOW - timedelta(minutes=ago)), moves=1, bytes=10 * GIB) for ago in (50, 20)
    ]
    searches: list[StepLimits] = []
    waits = decided(before={"last_hour": tuple(spent)}, consolidationBudget=budget, searches=searches)
    assert (waits.begins, waits.wake) == ((), NOW + timedelta(minutes=10))
    assert "consolidationBudget is spent until 2026-01-01T00:10:00Z" in waits.status.message
    assert waits.status.moves == (MOVING,)
    assert searches[0] == StepLimits(25 * GIB, 60) if "bytesPerHour" in budget else StepLimits(500 * GIB, 2)
    old = [spent[0].model_copy(update={"time": timestamp(NOW - HOUR)}), spent[1]]
    begun = decided(before={"last_hour": tuple(old)}, consolidationBudget=budget)
    assert begun.begins == STEP.moves
    assert [record.time for record in begun.status.last_hour] == [spent[1].time, timestamp(NOW)]


def test_what_was_moved_within_the_hour_is_not_searched_for() -> None:
    records = tuple(
        ConsolidationRecord(time=timestamp(NOW - timedelta(minutes=ago)), moves=1, replicas=(MOVING,))
        for ago in (61, 20)
    )
    searches: list[StepLimits] = []
    begun = decided(before={"last_hour": records}, searches=searches)
    assert searches[0].recent == {("m", "p-0")}
    assert begun.status.last_hour[-1].replicas == (MOVING,)
    decided(before={"last_hour": records[:1]}, searches=searches)
    assert searches[1].recent == frozenset()


def test_a_status_lists_a_limited_number_of_replicas() -> None:
    many = ConsolidationRecord(time=timestamp(NOW), moves=500, replicas=(MOVING,) * 500)
    begun = decided(before={"last_hour": (many,)}, consolidationBudget={"movesPerHour": 1000})
    assert [len(record.replicas) for record in begun.status.last_hour] == [0, 1]


def test_what_moves_is_waited_for() -> None:
    since = NOW - timedelta(minutes=5)
    moving = {"moving": (MOVING,), "moving_since": timestamp(since), "moves": (MOVING,), "gpus": 1}
    searches: list[StepLimits] = []
    at_work = decided(before=moving, progress=Progress((MOVING,)), searches=searches)
    assert (searches, at_work.begins, at_work.wake) == ([], (), since + timedelta(minutes=15))
    assert at_work.status.moving == (MOVING,)
    done = decided(before={**moving, "stable_since": ""})
    assert (done.status.moving, done.status.moves, done.status.gpus) == ((), (), 0)


def test_a_failure_stops_all_moves_for_an_hour_and_survives_a_restart() -> None:
    moving = {"moving": (MOVING,), "moving_since": timestamp(LONG_AGO)}
    failed = decided(before=moving, progress=Progress(failure="m from p-1 to p-0: no memory"))
    assert (failed.begins, failed.wake) == ((), NOW + HOUR)
    assert failed.status.paused_until == timestamp(NOW + HOUR)
    assert "paused until 2026-01-01T01:00:00Z after m from p-1 to p-0: no memory" in failed.status.message
    again = ConsolidationStatus.model_validate(failed.status.model_dump(by_alias=True))
    later = NOW + HOUR - timedelta(seconds=1)
    still = PoolRound(Packing(consolidate="Auto"), again, Progress(), "", True, later).decide(lambda _: (STEP,))
    assert still.begins == ()
    over = PoolRound(Packing(consolidate="Auto"), again, Progress(), "", False, NOW + HOUR).decide(lambda _: (STEP,))
    assert (over.begins, over.status.paused_until, over.status.failure) == (STEP.moves, "", "")


def test_times_of_another_release_that_are_none_count_as_now() -> None:
    strange = {"moving_since": "then", "stable_since": "x", "next_search": "y", "paused_until": "z"}
    assert decided(before=strange).wake == NOW + timedelta(minutes=1)


def test_a_failed_model_stays_where_it_is_in_the_search() -> None:
    searches: list[StepLimits] = []
    moving = {"moving": (MOVING,), "moving_since": timestamp(LONG_AGO)}
    progress = Progress(failure="m from p-1 to p-0: no memory", failed=(MOVING,), nodes={"p-0": "a"})
    failed = decided(before=moving, progress=progress, searches=searches)
    assert [(one.name, one.to_node) for one in failed.status.failed] == [("m", "a")]
    assert searches[0].staying == {"m"}

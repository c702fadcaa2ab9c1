"""One round of a pool's consolidation: it waits for rest, searches, recommends, and begins a step at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from argosy.api.consolidationstatus import ConsolidationRecord, ConsolidationStatus
from argosy.api.pool.packing import Consolidate, ConsolidationBudget, Packing
from argosy.api.values.times import parse_time, timestamp
from argosy.planning.consolidation.failures import staying, still_failed, with_failures
from argosy.planning.consolidation.moves import Move, Step
from argosy.planning.consolidation.progress import READY_WITHIN, Progress
from argosy.planning.consolidation.report import NOTHING, recommendation, recommended, waiting
from argosy.planning.consolidation.search import StepLimits

HOUR = timedelta(hours=1)
PAUSE = HOUR
"""For how long nothing is moved after a move that failed."""
SEARCH_AGAIN = HOUR
"""After which a pool that is still at rest is searched again: nodes may have come, and footprints have changed."""
_LISTED = 500
"""Replicas that a status lists of those that were moved within the last hour: the last ones."""
Find = Callable[[StepLimits], tuple[Step, ...]]


@dataclass(frozen=True, slots=True)
class PoolConsolidation:
    """What a round decides: the status, the moves that begin now, and when it is due again without any event."""

    status: ConsolidationStatus
    begins: tuple[Move, ...] = ()
    wake: datetime | None = None


@dataclass(frozen=True, slots=True)
class PoolRound:
    """The inputs of a round. `before`: the status that was written last; `changed`: the spec is another one since.

    `unrest`: what the pool is busy with, empty where it is at rest. `takes_part`: something may begin. `revisions`: of
    the groups that the status names, as far as they are declared.
    """

    packing: Packing
    before: ConsolidationStatus
    progress: Progress
    unrest: str
    changed: bool
    now: datetime
    takes_part: bool = True
    revisions: Mapping[str, str] = field(default_factory=dict)

    def decide(self, find: Find) -> PoolConsolidation:
        """Return the decision. `find` searches; it is called where a search is due."""
        status, now = self._recorded(), self.now
        if self.progress.under_way:
            begun = parse_time(status.moving_since) or now
            return PoolConsolidation(self._at_work(status), wake=begun + READY_WITHIN)
        if status.moving:
            status = self._at_an_end(status)
        if not self.takes_part:
            return PoolConsolidation(_retained(status))
        if self.unrest:
            return PoolConsolidation(_restless(status, self.unrest))
        since = parse_time(status.stable_since) or now
        status = status.model_copy(update={"stable_since": timestamp(since)})
        due = since + timedelta(milliseconds=self.packing.consolidate_after)
        following = parse_time(status.next_search)
        if following is not None and not self.changed:
            due = max(due, following)
        if now < due:
            message = status.message if following is not None else waiting(self.packing.consolidate_after)
            return PoolConsolidation(status.model_copy(update={"message": message}), wake=due)
        return self._searched(status, find)

    def _recorded(self) -> ConsolidationStatus:
        """Return the status without what was moved more than an hour ago, and with a failure that ends the moves."""
        status, now = self.before, self.now
        recent = tuple(one for one in status.last_hour if (parse_time(one.time) or now) > now - HOUR)
        failed = still_failed(status.failed, self.revisions, now)
        status = status.model_copy(update={"last_hour": recent, "failed": failed})
        if self.progress.failure:
            failed = with_failures(failed, self.progress.failed, self.progress.nodes, self.revisions, now)
            until = timestamp(now + PAUSE)
            changes = {"paused_until": until, "failure": self.progress.failure, "failed": failed}
            return status.model_copy(update=changes)
        if status.paused_until and now >= (parse_time(status.paused_until) or now):
            return status.model_copy(update={"paused_until": "", "failure": ""})
        return status

    def _at_an_end(self, status: ConsolidationStatus) -> ConsolidationStatus:
        """Return the status without what was being moved. A group that has moved counts as one that never failed."""
        moved = set[str]() if self.progress.failure else {move.name for move in status.moving}
        failed = tuple(one for one in status.failed if one.name not in moved)
        return status.model_copy(update={**NOTHING, "moving": (), "moving_since": "", "failed": failed})

    def _at_work(self, status: ConsolidationStatus) -> ConsolidationStatus:
        moving = self.progress.under_way
        return status.model_copy(update={"moving": moving, "stable_since": "", "next_search": ""})

    def _searched(self, status: ConsolidationStatus, find: Find) -> PoolConsolidation:
        budget = self.packing.consolidation_budget
        stays = staying(status.failed, self.now)
        steps = find(StepLimits(budget.bytes_per_hour, budget.moves_per_hour, _recent(status), stays))
        again = self.now + SEARCH_AGAIN
        if not steps:
            return _until(status.model_copy(update={**NOTHING, "next_search": timestamp(again)}), again)
        status = status.model_copy(update=recommended(steps))
        if self.packing.consolidate is not Consolidate.AUTO:
            message = recommendation(steps, "to move them, set spec.packing.consolidate to Auto")
            return _until(status.model_copy(update={"message": message, "next_search": timestamp(again)}), again)
        paused, affordable = parse_time(status.paused_until), self._affordable(status, steps[0])
        if paused is not None or affordable > self.now:
            at = max(paused or affordable, affordable)
            why = f"paused until {timestamp(at)} after {status.failure}" if paused else _spent(at)
            changes = {"message": recommendation(steps, why), "next_search": timestamp(at)}
            return _until(status.model_copy(update=changes), at)
        return self._begun(status, steps)

    def _begun(self, status: ConsolidationStatus, steps: tuple[Step, ...]) -> PoolConsolidation:
        step, now = steps[0], timestamp(self.now)
        moving = tuple(move.described for move in step.moves)
        record = ConsolidationRecord(time=now, moves=len(moving), bytes=step.bytes, replicas=moving)
        changes = {
            "message": recommendation(steps, f"{step.server} is being emptied"),
            "moving": moving,
            "moving_since": now,
            "stable_since": "",
            "next_search": "",
            "last_hour": _listing_replicas((*status.last_hour, record)),
        }
        return PoolConsolidation(status.model_copy(update=changes), step.moves, self.now + READY_WITHIN)

    def _affordable(self, status: ConsolidationStatus, step: Step) -> datetime:
        """Return when the budget allows a step: now, or when enough of the last hour's moves are an hour ago."""
        budget, spent, at = self.packing.consolidation_budget, list(status.last_hour), self.now
        while spent and not _fits(budget, spent, step):
            at = (parse_time(spent.pop(0).time) or self.now) + HOUR
        return at


def _listing_replicas(records: Sequence[ConsolidationRecord]) -> tuple[ConsolidationRecord, ...]:
    """Return the records, of which the last ones list their replicas."""
    left, result = _LISTED, list[ConsolidationRecord]()
    for record in reversed(records):
        left -= len(record.replicas)
        result.append(record if left >= 0 else record.model_copy(update={"replicas": ()}))
    return tuple(reversed(result))


def _recent(status: ConsolidationStatus) -> frozenset[tuple[str, str]]:
    """Return the replicas that were moved within the last hour, by group and server: none moves there and back."""
    return frozenset((move.name, move.to_server) for record in status.last_hour for move in record.replicas)


def _retained(status: ConsolidationStatus) -> ConsolidationStatus:
    """Return what counts once something may begin again: what was moved, and what failed."""
    return ConsolidationStatus(
        last_hour=status.last_hour, paused_until=status.paused_until, failure=status.failure, failed=status.failed
    )


def _fits(budget: ConsolidationBudget, spent: list[ConsolidationRecord], step: Step) -> bool:
    moves = sum(one.moves for one in spent) + len(step.moves)
    return moves <= budget.moves_per_hour and sum(one.bytes for one in spent) + step.bytes <= budget.bytes_per_hour


def _spent(at: datetime) -> str:
    return f"spec.packing.consolidationBudget is spent until {timestamp(at)}"


def _until(status: ConsolidationStatus, at: datetime) -> PoolConsolidation:
    return PoolConsolidation(status, wake=at)


def _restless(status: ConsolidationStatus, why: str) -> ConsolidationStatus:
    """Return the status of a pool that is busy: what was found before is not known to be so."""
    changes = {**NOTHING, "message": f"nothing is searched for: {why}", "stable_since": "", "next_search": ""}
    return status.model_copy(update=changes)

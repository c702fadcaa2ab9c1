"""The Events of a pool's consolidation, from a changed status. Pure."""

from collections.abc import Iterator

from argosy.api.consolidationstatus import ConsolidationMove, ConsolidationStatus
from argosy.api.status import ResourceStatus, ServingPoolStatus
from argosy.controller.events.announcements import NORMAL, WARNING, Announcement
from argosy.planning.amounts import gib
from argosy.planning.consolidation.moves import route

BEGAN, ENDED, FAILED = "ConsolidationMoving", "ConsolidationMoved", "ConsolidationFailed"


def consolidation_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield an Event for each move that began or was done, and for a failure, after a change of a pool's status."""
    former, present = _of(before), _of(now)
    if present.failure and (present.failure, present.paused_until) != (former.failure, former.paused_until):
        message = f"{present.failure}. Nothing is moved until {present.paused_until}"
        yield Announcement(WARNING, FAILED, message, present.paused_until)
    else:
        for move in former.moving:
            if move not in present.moving:
                yield Announcement(NORMAL, ENDED, f"{_described(move)} is done", _subject(move, former))
    for move in present.moving:
        if move not in former.moving:
            yield Announcement(NORMAL, BEGAN, f"{_described(move)} begins", _subject(move, present))


def _described(move: ConsolidationMove) -> str:
    return f"the move of {move.name} ({gib(move.bytes)}) {route(move)}"


def _subject(move: ConsolidationMove, status: ConsolidationStatus) -> str:
    return f"{move.name}/{move.from_server}/{move.to_server}/{status.moving_since}"


def _of(status: ResourceStatus | None) -> ConsolidationStatus:
    consolidation = status.consolidation if isinstance(status, ServingPoolStatus) else None
    return consolidation or ConsolidationStatus()

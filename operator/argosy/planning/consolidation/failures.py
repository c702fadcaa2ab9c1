"""Groups of which a move failed: they stay for a time, so that others move instead of the same one again and again."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from argosy.api.consolidationstatus import ConsolidationMove, FailedMove
from argosy.api.values.times import parse_time, timestamp

FIRST = timedelta(hours=2)
"""For how long a group stays after its first failure: longer than the pool pauses, so that other moves come first."""
LONGEST = timedelta(hours=24)
"""For how long a group stays at most: what a storage or a node was lacking may have come."""
_FORGOTTEN_AFTER = timedelta(hours=48)
"""After the end of its stay a group that was not moved counts as one that never failed."""
_LISTED = 100


def with_failures(
    before: Sequence[FailedMove],
    moves: Iterable[ConsolidationMove],
    nodes: Mapping[str, str],
    revisions: Mapping[str, str],
    now: datetime,
) -> tuple[FailedMove, ...]:
    """Return the failures with those of further moves. `nodes`: by server; `revisions`: by group."""
    by_name = {one.name: one for one in before}
    for move in moves:
        former = by_name.pop(move.name, None)
        failures = 1 if former is None else former.failures + 1
        by_name[move.name] = FailedMove(
            name=move.name,
            revision=revisions.get(move.name, ""),
            to_node=nodes.get(move.to_server, ""),
            failures=failures,
            until=timestamp(now + min(LONGEST, FIRST * 2 ** min(failures - 1, 8))),
        )
    return tuple(by_name.values())[-_LISTED:]


def still_failed(before: Sequence[FailedMove], revisions: Mapping[str, str], now: datetime) -> tuple[FailedMove, ...]:
    """Return the failures of groups that are declared as they were then, and that are not too long ago."""
    return tuple(
        one
        for one in before
        if revisions.get(one.name) == one.revision and now < (parse_time(one.until) or now) + _FORGOTTEN_AFTER
    )


def staying(failed: Iterable[FailedMove], now: datetime) -> frozenset[str]:
    """Return the groups that stay where they are for now."""
    return frozenset(one.name for one in failed if now < (parse_time(one.until) or now))

"""Events and metrics of a pool's consolidation."""

from tests.operator.planning.declared import pool

from argosy.api.consolidationstatus import ConsolidationMove, ConsolidationRecord, ConsolidationStatus
from argosy.api.status import EnsembleStatus, ServingPoolStatus
from argosy.controller.events.consolidation import consolidation_events
from argosy.controller.metrics.pools import PoolMetrics

GIB = 1 << 30
MOVE = ConsolidationMove(name="chat", from_server="p-1", from_node="b", to_server="p-0", to_node="a", bytes=2 * GIB)


def status(**fields: object) -> ServingPoolStatus:
    """Return a pool's status with these fields of its consolidation."""
    return ServingPoolStatus(consolidation=ConsolidationStatus.model_validate(fields))


def test_a_move_is_reported_when_it_begins_and_when_it_is_done() -> None:
    moving = status(moving=(MOVE,), moving_since="2026-01-01T00:00:00Z")
    (began,) = consolidation_events(status(), moving)
    assert (began.type, began.reason) == ("Normal", "ConsolidationMoving")
    assert began.message == "the move of chat (2 GiB) from p-1 on node b to p-0 on node a begins"
    assert list(consolidation_events(moving, moving)) == []
    (ended,) = consolidation_events(moving, status())
    assert (ended.reason, ended.message) == (
        "ConsolidationMoved",
        "the move of chat (2 GiB) from p-1 on node b to p-0 on node a is done",
    )


def test_a_failure_is_a_warning_that_says_until_when_nothing_is_moved() -> None:
    moving = status(moving=(MOVE,), moving_since="2026-01-01T00:00:00Z")
    failed = status(failure="chat from p-1 to p-0: no memory", paused_until="2026-01-01T01:00:00Z")
    (event,) = consolidation_events(moving, failed)
    assert (event.type, event.reason) == ("Warning", "ConsolidationFailed")
    assert event.message == "chat from p-1 to p-0: no memory. Nothing is moved until 2026-01-01T01:00:00Z"
    assert list(consolidation_events(failed, failed)) == []
    assert list(consolidation_events(None, EnsembleStatus())) == []


def test_metrics_of_pools() -> None:
    record = ConsolidationRecord(time="2026-01-01T00:00:00Z", moves=1, bytes=GIB)
    written = status(gpus=2, bytes=3 * GIB, moving=(MOVE,), last_hour=(record,), paused_until="2026-01-01T01:00:00Z")
    pools = [pool().model_copy(update={"status": written}), pool("other")]
    samples = {
        sample.name: (sample.labels["pool"], sample.value)
        for family in PoolMetrics(lambda: pools).collect()
        for sample in family.samples
    }
    assert samples == {
        "argosy_consolidation_gpus": ("p", 2),
        "argosy_consolidation_bytes": ("p", 3 * GIB),
        "argosy_consolidation_moving": ("p", 1),
        "argosy_consolidation_moved_bytes": ("p", GIB),
        "argosy_consolidation_paused": ("p", 1),
    }

"""What a status says of earlier decisions, read back: an operator that starts again goes on from there."""

from datetime import UTC, datetime

from msgspec import structs

from argosy.api.conditions import Reason
from argosy.api.status import OutOfMemoryStatus, ScalingChange, ScalingStatus
from argosy.autoscaling.decision import Allocation, Change, Lowering
from argosy.autoscaling.memory import Memory
from argosy.autoscaling.policy import Bounds, Served

_US = 1e6


def allocation_of(status: ScalingStatus | None, bounds: Bounds) -> Allocation:
    """Return what there was last, by whatever decided it, within today's bounds; their minimum for what is new."""
    if status is None:
        return Allocation(bounds.min_replicas, bounds.min_instances)
    delay = status.max_queue_delay_microseconds
    before = Allocation(
        status.replicas, status.instances, None if delay is None else delay / _US, status.max_batch_size
    )
    return bounded(before, bounds)


def bounded(allocation: Allocation, bounds: Bounds) -> Allocation:
    """Return the allocation, brought within the bounds: they may have been edited since."""
    window, longest = allocation.window_s, bounds.max_window_s
    batch = allocation.max_batch
    return structs.replace(
        allocation,
        replicas=min(max(allocation.replicas, bounds.min_replicas), bounds.max_replicas),
        instances=min(max(allocation.instances, bounds.min_instances), bounds.max_instances),
        window_s=None if window is None or longest is None else min(window, longest),
        max_batch=None if batch is None or batch >= bounds.max_batch else batch,
    )


def restored(status: ScalingStatus | None) -> Memory:
    """Return what decisions need to know of earlier ones."""
    return Memory.restored(_last_change(status), _lowering(status.out_of_memory if status is not None else None))


def _lowering(status: OutOfMemoryStatus | None) -> Lowering | None:
    at = _time(status.time) if status is not None else None
    if status is None or at is None:
        return None
    failed = Served(status.versions, status.footprint, status.gpu_memory or 0)
    return Lowering(at, failed, status.message, status.max_instances)


def _last_change(status: ScalingStatus | None) -> Change | None:
    """Return the newest change that a status tells of."""
    newest = status.history[0] if status is not None and status.history else None
    at = _time(newest.time) if newest is not None else None
    if newest is None or at is None:
        return None
    before = Allocation(newest.former_replicas, newest.former_instances)
    after = Allocation(newest.replicas, newest.instances)
    return Change(at, before, after, _reason(newest), newest.message)


def _reason(change: ScalingChange) -> Reason:
    """Its reason; the word of another release counts as a change all the same."""
    try:
        return Reason(change.reason)
    except ValueError:
        return Reason.STEADY


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)

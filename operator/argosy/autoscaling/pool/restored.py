"""What a status says of earlier decisions, read back: an operator that starts again goes on from there."""

from argosy.api.conditions import Reason
from argosy.api.status import OutOfMemoryStatus, ScalingChange, ScalingStatus
from argosy.api.values.times import parse_time
from argosy.autoscaling.decision import Allocation, Change, Lowering
from argosy.autoscaling.memory import Memory
from argosy.autoscaling.policy import Bounds, Served

_US = 1e6


def allocation_of(status: ScalingStatus | None, bounds: Bounds) -> Allocation:
    """Return what there was last, by whatever decided it, within today's bounds; their minimum for what is new."""
    if status is None:
        return Allocation(bounds.min_replicas, bounds.min_instances).within(bounds)
    delay = status.max_queue_delay_microseconds
    before = Allocation(
        status.replicas, status.instances, None if delay is None else delay / _US, status.max_batch_size
    )
    return before.within(bounds)


def restored(status: ScalingStatus | None) -> Memory:
    """Return what decisions need to know of earlier ones."""
    return Memory.restored(_last_change(status), _lowering(status.out_of_memory if status is not None else None))


def _lowering(status: OutOfMemoryStatus | None) -> Lowering | None:
    at = parse_time(status.time) if status is not None else None
    if status is None or at is None:
        return None
    failed = Served(status.versions, status.footprint, status.gpu_memory or 0)
    return Lowering(at, failed, status.message, status.max_instances)


def _last_change(status: ScalingStatus | None) -> Change | None:
    """Return the newest change that a status tells of."""
    newest = status.history[0] if status is not None and status.history else None
    at = parse_time(newest.time) if newest is not None else None
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

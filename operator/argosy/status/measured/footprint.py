"""What a model was measured to use, in its status, and what a new operator process restores from it."""

from argosy.api.status import FootprintStatus, MeasuredFootprintStatus
from argosy.api.values.times import parse_time, timestamp
from argosy.autoscaling.pool.footprints import MeasuredFootprint


def with_measured(footprint: FootprintStatus | None, measured: MeasuredFootprint | None) -> FootprintStatus | None:
    """Return a model's footprint with the measurement."""
    if measured is None:
        return footprint
    report = MeasuredFootprintStatus(
        host_memory=measured.host, gpu_memory=measured.gpu, time=timestamp(measured.measured_at)
    )
    return (footprint or FootprintStatus()).model_copy(update={"measured": report})


def restored(footprint: FootprintStatus | None) -> MeasuredFootprint | None:
    """Return the measurement that another process wrote into a status; None without one, or without its time."""
    status = footprint.measured if footprint is not None else None
    measured_at = parse_time(status.time) if status is not None else None
    if status is None or measured_at is None:
        return None
    return MeasuredFootprint(measured_at, status.host_memory, status.gpu_memory)

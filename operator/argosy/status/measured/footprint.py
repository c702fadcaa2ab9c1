"""What a model was measured to use, in its status, and what a new operator process restores from it."""

from argosy.api import InferenceModel
from argosy.api.status import CrashStatus, FootprintStatus, InferenceModelStatus, MeasuredFootprintStatus, Status
from argosy.api.values.times import parse_time, timestamp
from argosy.planning.demand.measured import Crash, MeasuredFootprint
from argosy.snapshot import FleetSnapshot


def last_measured(snapshot: FleetSnapshot, model: InferenceModel) -> MeasuredFootprint | None:
    """Return what a model was last measured to use: in this process, or else by its status."""
    return snapshot.footprints.get(model.identity) or restored(snapshot.status(model))


def with_measured(footprint: FootprintStatus | None, measured: MeasuredFootprint | None) -> FootprintStatus | None:
    """Return a model's footprint with the measurement."""
    if measured is None:
        return footprint
    report = MeasuredFootprintStatus(
        host_memory=measured.host,
        gpu_memory=measured.gpu,
        peak_gpu_memory=None if measured.crashed else measured.peak,
        time=timestamp(measured.measured_at),
        since=timestamp(measured.since or measured.measured_at),
        version=measured.version,
        revision=measured.revision,
        instances=measured.instances,
        server=measured.server,
        gpu_type=measured.product,
        crash=_reported(measured.crash),
    )
    return (footprint or FootprintStatus()).model_copy(update={"measured": report})


def restored(status: Status | None) -> MeasuredFootprint | None:
    """Return the measurement that another process wrote into a status; None without one, or without its time."""
    footprint = status.footprint if isinstance(status, InferenceModelStatus) else None
    report = footprint.measured if footprint is not None else None
    measured_at = parse_time(report.time) if report is not None else None
    if report is None or measured_at is None:
        return None
    return MeasuredFootprint(
        measured_at=measured_at,
        host=report.host_memory,
        gpu=report.gpu_memory,
        peak=report.peak_gpu_memory,
        since=parse_time(report.since) or measured_at,
        version=report.version,
        revision=report.revision,
        instances=report.instances,
        server=report.server,
        product=report.gpu_type,
        crash=_crash(report.crash),
    )


def _reported(crash: Crash | None) -> CrashStatus | None:
    return None if crash is None else CrashStatus(peak_gpu_memory=crash.per_instance, time=timestamp(crash.at))


def _crash(report: CrashStatus | None) -> Crash | None:
    at = parse_time(report.time) if report is not None else None
    return Crash(report.peak_gpu_memory, at) if report is not None and at is not None else None

"""What models' processes use, as statuses report it: by new measurements, but not by each of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from argosy.api import ConditionStatus, ConditionType, InferenceModel
from argosy.api.status import InferenceModelStatus
from argosy.autoscaling.metrics.signals import MemorySignals, Signals
from argosy.planning.demand.measured import Crash, MeasuredFootprint
from argosy.planning.rollouts.revision import revision_of

NEWER_AFTER = timedelta(seconds=30)
"""Shortest time between two reports, since each is a write of a status."""
REPORTED_AGAIN_AFTER = timedelta(minutes=30)
"""Time after which a report is replaced even if its numbers have changed little, so that its age says something."""
NOTICEABLE = 0.1
"""Smallest change that is reported, as a share of the former bytes."""
GROWTH = 0.05
"""Smallest growth that a plan takes into account, as a share of the highest bytes before. A GPU's headroom has room for
less, and noise moves nothing.
"""


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A model with its last status, its signals, and the products of GPUs by server."""

    model: InferenceModel
    status: object
    signals: Signals | None
    products: Mapping[str, str]

    @property
    def memory(self) -> MemorySignals | None:
        """The memory of the version that is declared; None while servers come to it, since what they have then may be
        another revision of it.
        """
        if self.signals is None or not _has_settled(self.status):
            return None
        declared = self.model.spec.default_version
        return next((memory for memory in self.signals.memory if memory.version == declared), None)


def measured_footprints(
    before: Mapping[str, MeasuredFootprint], models: Iterable[MeasuredModel]
) -> dict[str, MeasuredFootprint]:
    """Return the report of each measured model, by identity.

    The last report of a model that is not measured any more stays, with its time. What was measured of a process that
    has crashed is no fact about the one that follows, which begins again: a leak would have its peak for ever. The peak
    is remembered for as long as it counts.
    """
    reports = {one.model.identity: _next(before.get(one.model.identity), one) for one in models}
    return {name: report for name, report in reports.items() if report is not None}


def _next(before: MeasuredFootprint | None, measured: MeasuredModel) -> MeasuredFootprint | None:
    memory = measured.memory
    if before is not None and measured.signals is not None and before.server in measured.signals.crashed:
        before = before if before.crashed else replace(before, crashed=True, crash=_crash(before, measured.signals.at))
    if memory is None or measured.signals is None or (memory.host is None and memory.gpu is None):
        return before
    report = _report(measured, memory, measured.signals.at)
    if before is not None and before.revision == report.revision:
        report = replace(report, crash=_recent_crash(before, report.measured_at))
    if before is None or before.crashed or _subject(before) != _subject(report):
        return report
    peak, grown = before.peak, (report.peak or 0) > (before.peak or 0) * (1 + GROWTH)
    report = replace(report, peak=report.peak if grown else peak, since=before.since)
    age = report.measured_at - before.measured_at
    differs = grown or _differs(before.host, report.host) or _differs(before.gpu, report.gpu)
    return report if age >= REPORTED_AGAIN_AFTER or (age >= NEWER_AFTER and differs) else before


def _crash(before: MeasuredFootprint, at: datetime) -> Crash | None:
    """Return the crash of a process that was measured to have this before, with the highest peak that counts."""
    former = _recent_crash(before, at)
    peak = max(before.per_instance, former.per_instance if former is not None else 0)
    return Crash(peak, at) if peak else None


def _recent_crash(before: MeasuredFootprint, now: datetime) -> Crash | None:
    return before.crash if before.crash is not None and before.crash.counts(now) else None


def _report(measured: MeasuredModel, memory: MemorySignals, at: datetime) -> MeasuredFootprint:
    model, gpu = measured.model, _bytes(memory.gpu)
    return MeasuredFootprint(
        measured_at=at,
        host=_bytes(memory.host),
        gpu=gpu,
        peak=gpu,
        since=at,
        version=memory.version,
        revision=revision_of(model).name,
        instances=_per_gpu(memory.instances, model.spec.gpus),
        server=memory.server,
        product=measured.products.get(memory.server, ""),
    )


def _per_gpu(instances: int, gpus: int) -> int:
    """Return the instances on each GPU of a model with so many GPUs: one that is split has a part on each."""
    return instances // gpus if gpus and instances % gpus == 0 else instances


def _subject(footprint: MeasuredFootprint) -> tuple[int, str, int, str]:
    """Return what two measurements have in common of which one continues the other."""
    return footprint.version, footprint.revision, footprint.instances, footprint.product


def _has_settled(status: object) -> bool:
    """Return whether the servers of a model have loaded what is declared, by its status."""
    if not isinstance(status, InferenceModelStatus):
        return False
    loaded, moving = status.condition(ConditionType.LOADED), status.condition(ConditionType.RECONCILING)
    under_way = moving is None or moving.status is not ConditionStatus.FALSE
    return loaded is not None and loaded.status is ConditionStatus.TRUE and not under_way


def _bytes(value: float | None) -> int | None:
    return None if value is None else round(value)


def _differs(before: int | None, after: int | None) -> bool:
    if before is None or after is None:
        return before != after
    return abs(after - before) > NOTICEABLE * before

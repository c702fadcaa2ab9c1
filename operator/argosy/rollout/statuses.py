"""The state of a rollout as a status, and back: a restarted operator goes on from it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import isfinite

from argosy.api.rolloutstatus import (
    AnalysisStatus,
    HeldRevision,
    MeasurementStatus,
    RevisionStatus,
    RolloutRecord,
    RolloutStatus,
    ShadowStatus,
    StepVersion,
)
from argosy.api.values.times import parse_time
from argosy.rollout.state import Ending, FailedRevision, Phase, Record, Revision, RolloutState
from argosy.rollout.verdict import Measurement, Outcome, Verdict

MOST_MEASUREMENTS = 50
LONGEST = 2000
"""Characters of a message."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_status(state: RolloutState) -> RolloutStatus:
    """Return the state as a status. Steps are counted from 1, times have microseconds."""
    proving = state.phase in (Phase.STEPPING, Phase.PROMOTING)
    return RolloutStatus(
        phase=state.phase,
        step=state.step + 1 if proving else 0,
        stable=_revision_status(state.stable),
        candidate=_revision_status(state.candidate),
        former=_revision_status(state.former),
        number=state.number,
        since=_text(state.since),
        paused_at=_text(state.paused_at),
        paused_for=round(state.paused_for / timedelta(milliseconds=1)),
        observed_at=_text(state.observed_at),
        waiting=state.waiting,
        message=state.message[:LONGEST],
        analysis=_analysis_status(state.verdict),
        shadow=state.verdict.shadow if state.verdict is not None else None,
        promoted_by_hand=state.by_hand,
        handled=state.handled,
        held=tuple(
            HeldRevision(
                revision=failed.revision.name,
                version=failed.revision.version,
                reason=failed.reason,
                message=failed.message[:LONGEST],
                time=_text(failed.time),
            )
            for failed in state.failed
        ),
        history=tuple(
            RolloutRecord(
                revision=record.revision.name,
                version=record.revision.version,
                steps=_steps(record.revision),
                outcome=record.outcome,
                message=record.message[:LONGEST],
                time=_text(record.time),
                analysis=_analysis_status(record.verdict),
            )
            for record in state.history
        ),
    )


def from_status(status: RolloutStatus | None) -> RolloutState | None:
    """Return the state of a status; None if there is none, or its phase is unknown to this release."""
    if status is None or status.phase not in set(Phase):
        return None
    return RolloutState(
        phase=Phase(status.phase),
        since=_time(status.since) or _EPOCH,
        stable=_revision(status.stable),
        candidate=_revision(status.candidate),
        former=_revision(status.former),
        number=status.number,
        step=max((status.step or 0) - 1, 0),
        paused_at=_time(status.paused_at),
        paused_for=timedelta(milliseconds=status.paused_for),
        observed_at=_time(status.observed_at),
        waiting=status.waiting,
        message=status.message,
        verdict=_verdict(status.analysis, status.shadow),
        by_hand=status.promoted_by_hand,
        failed=tuple(_failed(status.held)),
        history=tuple(_records(status.history)),
        handled=status.handled,
    )


def _revision_status(revision: Revision | None) -> RevisionStatus | None:
    if revision is None:
        return None
    return RevisionStatus(revision=revision.name, version=revision.version, steps=_steps(revision))


def _steps(revision: Revision) -> tuple[StepVersion, ...]:
    return tuple(StepVersion(model=model, version=version) for model, version in revision.steps)


def _revision(status: RevisionStatus | RolloutRecord | None) -> Revision | None:
    if status is None:
        return None
    return Revision(status.revision, status.version, tuple((step.model, step.version) for step in status.steps))


def _analysis_status(verdict: Verdict | None) -> AnalysisStatus | None:
    if verdict is None:
        return None
    return AnalysisStatus(
        outcome=verdict.outcome,
        reason=verdict.reason,
        message=verdict.message[:LONGEST],
        analysis=verdict.analysis,
        measurements=tuple(
            MeasurementStatus(
                name=measurement.name,
                value=_finite(measurement.value),
                stable=_finite(measurement.stable),
                limit=measurement.limit,
                samples=measurement.samples,
                test=measurement.test,
                outcome=measurement.outcome or "",
                message=measurement.message[:LONGEST],
                progress=_finite(measurement.progress),
            )
            for measurement in verdict.measurements[:MOST_MEASUREMENTS]
        ),
    )


def _verdict(status: AnalysisStatus | None, shadow: ShadowStatus | None = None) -> Verdict | None:
    if status is None or status.outcome not in set(Outcome):
        return None
    measurements = tuple(
        Measurement(
            measurement.name,
            measurement.value,
            measurement.limit,
            measurement.samples,
            measurement.test,
            Outcome(measurement.outcome) if measurement.outcome in set(Outcome) else None,
            measurement.stable,
            measurement.message,
            measurement.progress,
        )
        for measurement in status.measurements
    )
    return Verdict(Outcome(status.outcome), status.analysis, status.reason, status.message, measurements, shadow)


def _failed(entries: Iterable[HeldRevision]) -> Iterable[FailedRevision]:
    for entry in entries:
        revision = Revision(entry.revision, entry.version)
        yield FailedRevision(revision, entry.reason, entry.message, _time(entry.time) or _EPOCH)


def _records(entries: Iterable[RolloutRecord]) -> Iterable[Record]:
    for entry in entries:
        revision = _revision(entry)
        if entry.outcome in set(Ending) and revision is not None:
            time = _time(entry.time) or _EPOCH
            yield Record(revision, Ending(entry.outcome), entry.message, time, _verdict(entry.analysis))


def _finite(value: float | None) -> float | None:
    """Return a value that a status can have: neither infinity nor NaN."""
    return value if value is not None and isfinite(value) else None


def _text(time: datetime | None) -> str:
    """Return a time in UTC with microseconds."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z") if time is not None else ""


def _time(text: str) -> datetime | None:
    return parse_time(text) if text else None

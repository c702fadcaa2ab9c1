"""The Events of a rollout, from a changed status. Pure."""

from collections.abc import Iterator, Mapping

from argosy.analysis.pool_analysis import STICKY_KEY, is_lacked
from argosy.api.rolloutstatus import MeasurementStatus, RolloutRecord, RolloutStatus, revision_in_words
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ResourceStatus
from argosy.api.values.quantity import format_percent
from argosy.controller.events.announcements import NORMAL, WARNING, Announcement
from argosy.rollout.state import PROVING, Ending, Phase, Waiting

_REASONS: Mapping[str, tuple[str, str]] = {
    Ending.PROMOTED: (NORMAL, "RolloutCompleted"),
    Ending.ROLLED_BACK: (WARNING, "RolloutRolledBack"),
    Ending.SUPERSEDED: (NORMAL, "RolloutSuperseded"),
    Ending.WITHDRAWN: (NORMAL, "RolloutWithdrawn"),
    Ending.UNDONE: (NORMAL, "RolloutUndone"),
}
_WAITING: Mapping[str, tuple[str, str]] = {
    Waiting.PAUSED: (NORMAL, "RolloutPaused"),
    Waiting.INCONCLUSIVE: (WARNING, "RolloutInconclusive"),
}


def rollout_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield the Events of a rollout after a change of a model's or ensemble's status."""
    present = _rollout_of(now)
    if present is None:
        return
    former = _rollout_of(before) or RolloutStatus(phase=Phase.STABLE, history=present.history)
    for record in reversed(present.history):
        if record not in former.history and record.outcome in _REASONS:
            type_, reason = _REASONS[record.outcome]
            yield Announcement(type_, reason, _ended(record), f"{record.revision}/{record.time}")
    yield from _entered(former, present)
    keys = _lacking(present)
    if keys is not None and (_lacking(former) is None or present.number != former.number):
        yield Announcement(WARNING, "StickyKeyMissing", keys.message, str(present.number))
    if present.waiting != former.waiting and present.waiting in _WAITING:
        type_, reason = _WAITING[present.waiting]
        yield Announcement(type_, reason, f"{_candidate(present)}: {present.message}", _step(present))


def _entered(former: RolloutStatus, present: RolloutStatus) -> Iterator[Announcement]:
    """Yield the Event of a phase or step that began."""
    if present.phase not in PROVING or present.stable is None:
        return
    if present.number != former.number:
        stable = revision_in_words(present.stable.revision, present.stable.version)
        message = f"{_candidate(present)} is to replace {stable}"
        yield Announcement(NORMAL, "RolloutStarted", message, str(present.number))
    if _step(present) == _step(former):
        return
    share = format_percent(present.desired_traffic or 0)
    if present.phase == Phase.SHADOWING:
        message = f"requests are mirrored to {_candidate(present)}"
        yield Announcement(NORMAL, "RolloutShadowing", message, _step(present))
    elif present.phase == Phase.STEPPING:
        message = f"step {present.step} of {present.steps}: {_candidate(present)} gets {share} of requests"
        yield Announcement(NORMAL, "RolloutStep", message, _step(present))


def _lacking(rollout: RolloutStatus) -> MeasurementStatus | None:
    """Return the measurement of the keys in spec.rollout.sticky if most requests have none of them."""
    measurements = rollout.analysis.measurements if rollout.analysis is not None else ()
    return next((one for one in measurements if one.name == STICKY_KEY and is_lacked(one.value)), None)


def _step(rollout: RolloutStatus) -> str:
    return f"{rollout.number}/{rollout.phase}/{rollout.step}"


def _candidate(rollout: RolloutStatus) -> str:
    candidate = rollout.candidate
    return revision_in_words(candidate.revision, candidate.version) if candidate is not None else "no revision"


def _ended(record: RolloutRecord) -> str:
    ends = f"{revision_in_words(record.revision, record.version)}: {record.outcome}"
    return f"{ends}: {record.message}" if record.message else ends


def _rollout_of(status: ResourceStatus | None) -> RolloutStatus | None:
    return status.rollout if isinstance(status, InferenceModelStatus | EnsembleStatus) else None

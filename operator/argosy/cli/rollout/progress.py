"""How far a rollout is, as `kubectl rollout status` says it: in one line, and whether it has ended."""

from dataclasses import dataclass

from argosy.api.conditions import ConditionType
from argosy.api.rolloutstatus import RevisionStatus, RolloutStatus, revision_in_words
from argosy.api.values.quantity import format_percent
from argosy.cli.rollout.member import Member
from argosy.planning.rollouts.requests import RETRY, UNDO
from argosy.rollout.requests import handled_entry, revision_named
from argosy.rollout.state import Phase

_ENDED = frozenset({Phase.STABLE, Phase.PROMOTED})
READY, STALLED, RECONCILING = ConditionType.READY, ConditionType.STALLED, ConditionType.RECONCILING


@dataclass(frozen=True, slots=True)
class Progress:
    """One line about a rollout. `finished`: what is declared serves; `failed`: it will not without a change."""

    message: str
    finished: bool = False
    failed: bool = False


def progress(member: Member) -> Progress:
    """Return how far the rollout of what is declared is."""
    if not member.is_observed:
        return Progress(f"the change of {member.described} has not been seen by Argosy yet")
    rollout = member.rollout
    if rollout is None:
        return _by_conditions(member, "")
    if pending := _pending(member, rollout):
        return Progress(f"the annotation {pending} has not been acted upon yet")
    if rollout.phase == Phase.HELD:
        return Progress(f"Held: {rollout.message}", failed=True)
    if rollout.phase in _ENDED:
        return _by_conditions(member, f"{rollout.phase}: {rollout.message or serving(rollout.stable)}")
    if member.holds(STALLED):
        return Progress(f"{under_way(rollout)}; Stalled: {member.message(STALLED)}", failed=True)
    return Progress(under_way(rollout))


def under_way(rollout: RolloutStatus) -> str:
    """Return the line about a rollout that has not ended: phase, revision, traffic, and what it waits for."""
    step = f" {rollout.step} of {rollout.steps}" if rollout.step and rollout.steps else ""
    parts = [f"{rollout.phase}{step}", described(rollout.candidate), traffic(rollout)]
    what = ", ".join(part for part in parts if part)
    waiting = f"{rollout.waiting}: " if rollout.waiting else ""
    return f"{what}; {waiting}{rollout.message}" if rollout.message else what


def traffic(rollout: RolloutStatus) -> str:
    """Return the candidate's share of the traffic, as desired and as measured; empty if there is none."""
    if rollout.desired_traffic is None:
        return ""
    measured = f" (measured {format_percent(rollout.traffic)})" if rollout.traffic is not None else ""
    return f"{format_percent(rollout.desired_traffic)} of the requests{measured}"


def described(revision: RevisionStatus | None) -> str:
    """Return a revision with its version; empty for none."""
    return revision_in_words(revision.revision, revision.version) if revision is not None else ""


def serving(revision: RevisionStatus | None) -> str:
    """Return that a revision serves."""
    return f"{described(revision) or 'nothing'} serves"


def _pending(member: Member, rollout: RolloutStatus) -> str:
    """Return the annotation that will end the present rest; empty if none will. Others have no effect at rest."""
    if rollout.phase in _ENDED and rollout.stable is not None and rollout.former is not None:
        annotation, names = UNDO, {rollout.stable.revision}
    elif rollout.phase == Phase.HELD:
        version = member.spec.get("version")
        annotation, names = RETRY, {held.revision for held in rollout.held if version in (None, held.version)}
    else:
        return ""
    value = member.annotations.get(annotation, "")
    if annotation == UNDO and UNDO in rollout.message:
        return ""  # it is not followed, and the message says why
    is_handled = handled_entry(annotation.rpartition("/")[2], value) in rollout.handled
    return annotation if revision_named(value) in names and not is_handled else ""


def _by_conditions(member: Member, message: str) -> Progress:
    """Return the progress of what needs no proof, or whose proof has ended: whether it is Ready."""
    if member.holds(READY):
        return Progress(message or f"{member.described} is Ready", finished=True)
    if member.holds(STALLED):
        return Progress(f"Stalled: {member.message(STALLED)}", failed=True)
    waits = member.message(RECONCILING) or member.message(READY) or "there is no status yet"
    return Progress(f"{message}; {waits}" if message else waits)

"""The annotation by which each command asks something of a rollout, and why it would have no effect.

A value names a revision and, after `@`, the time, so that the same request can be made again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from argosy.api.rolloutstatus import HeldRevision, RolloutStatus, revision_in_words
from argosy.api.values.times import timestamp
from argosy.cli.rollout.member import Member
from argosy.cli.rollout.progress import described, serving
from argosy.planning.rollouts.requests import PAUSE, PROMOTE, RETRY, UNDO
from argosy.rollout.requests import FURTHER
from argosy.rollout.state import PROVING, RESTING, Phase

_NOTHING_PROVEN = (
    "{member} proves nothing: spec.rollout has neither steps nor shadow, so a new version replaces the former once it "
    "is loaded. Add them, or change spec.version in Git"
)


class RequestRefusedError(Exception):
    """A request would have no effect; the message says why, and what would have one."""


@dataclass(frozen=True, slots=True)
class Request:
    """An annotation to set, or to remove where `value` is None, and what follows from it."""

    annotation: str
    value: str | None
    message: str


def pause(member: Member) -> Request:
    """Return the request to stop the clocks of a rollout, or of the next one where none is under way."""
    rollout = _proving(member)
    if member.annotations.get(PAUSE, "").lower() == "true" or _paused_by_spec(member):
        raise RequestRefusedError(f"{member.described} is paused already: argosy rollout resume {member.name}")
    if rollout.phase in RESTING:
        message = f"no rollout is under way, it is {rollout.phase}; the next one is paused until argosy rollout resume"
        return Request(PAUSE, "true", f"{message} {member.name}")
    return Request(PAUSE, "true", "paused: steps and their clocks stop; a candidate that fails is still taken back")


def resume(member: Member) -> Request:
    """Return the request to go on with a rollout."""
    _proving(member)
    if _paused_by_spec(member):
        raise RequestRefusedError(
            f"{member.described}: spec.rollout.paused is true; set it to false where it is declared"
        )
    if PAUSE not in member.annotations:
        raise RequestRefusedError(f"{member.described} is not paused")
    return Request(PAUSE, None, "resumed: clocks go on from where they stopped")


def promote(member: Member, now: datetime) -> Request:
    """Return the request to give the candidate all traffic without further proof."""
    rollout = _proving(member)
    candidate = rollout.candidate
    if candidate is None or rollout.phase not in PROVING:
        raise RequestRefusedError(
            f"{member.described} has no candidate to promote; it is {rollout.phase}: {_next(rollout)}"
        )
    loading = rollout.phase == Phase.LOADING
    when = "once it is loaded it gets" if loading else "it gets"
    message = f"{described(candidate)} is promoted without further proof: {when} all traffic"
    return Request(PROMOTE, _once(candidate.revision, now), message)


def retry(member: Member, now: datetime, revision: str = "") -> Request:
    """Return the request to try a held revision again; by default the one that is declared."""
    rollout = _proving(member)
    held = _held(member, rollout, revision)
    return Request(
        RETRY, _once(held.revision, now), f"{_name(held)} is tried again; it was held: {held.message or held.reason}"
    )


def undo(member: Member, now: datetime, to: str = "") -> Request:
    """Return the request to take back what is declared, by default for the revision before it."""
    rollout = _proving(member)
    if rollout.phase in (Phase.ROLLING_BACK, Phase.HELD):
        raise RequestRefusedError(
            f"{member.described} is {rollout.phase}: what is declared is taken back already; {serving(rollout.stable)}"
        )
    current = rollout.candidate or rollout.stable
    target = rollout.stable if rollout.candidate is not None else rollout.former
    if current is None:
        raise RequestRefusedError(f"{member.described} serves nothing yet that could be taken back")
    if to:
        if to == current.revision:
            raise RequestRefusedError(f"revision {to} is the one to be taken back; name another one")
        _check(to, _revisions(rollout) - {current.revision})
        if any(held.revision == to for held in rollout.held):
            raise RequestRefusedError(
                f"revision {to} failed before and is not gone back to; declare it, and then: "
                f"argosy rollout retry {member.name} --revision {to}"
            )
    elif target is None:
        raise RequestRefusedError(f"{member.described} has no former revision; change the spec in Git")
    served = f"revision {to}" if to else described(target)
    message = f"{described(current)} is taken back, and {served} serves until the spec changes: change it in Git, too"
    return Request(UNDO, _once(f"{current.revision}{FURTHER}{to}" if to else current.revision, now), message)


def _proving(member: Member) -> RolloutStatus:
    """Return the status of a rollout. Raises RequestRefusedError where nothing is proven."""
    if member.rollout is None:
        if not member.proves:
            raise RequestRefusedError(_NOTHING_PROVEN.format(member=member.described))
        raise RequestRefusedError(f"{member.described} has no status of a rollout yet; try again in a moment")
    return member.rollout


def _held(member: Member, rollout: RolloutStatus, revision: str) -> HeldRevision:
    """Return the held revision of this name, or else the declared one: by its version, or the newest."""
    if not rollout.held:
        raise RequestRefusedError(
            f"{member.described} has no held revision that could be tried again; {serving(rollout.stable)}"
        )
    if revision:
        _check(revision, {held.revision for held in rollout.held})
        return next(held for held in rollout.held if held.revision == revision)
    if rollout.phase != Phase.HELD:
        names = ", ".join(held.revision for held in rollout.held)
        raise RequestRefusedError(
            f"{member.described} is {rollout.phase}: what is declared is not held. Held before: {names}; to try one "
            "again, declare it"
        )
    declared = [held for held in rollout.held if held.version == member.spec.get("version")]
    return (declared or list(rollout.held))[0]


def _revisions(rollout: RolloutStatus) -> set[str]:
    """Return the revisions that may be gone back to, as far as the status has them."""
    current = (one.revision for one in (rollout.stable, rollout.candidate, rollout.former) if one is not None)
    return {*current, *(record.revision for record in rollout.history)}


def _check(revision: str, revisions: Iterable[str]) -> None:
    names = sorted(revisions)
    if revision not in names:
        raise RequestRefusedError(f"there is no revision {revision!r}; known: {', '.join(names) or 'none'}")


def _next(rollout: RolloutStatus) -> str:
    """Return what makes a candidate of what is declared."""
    if rollout.phase == Phase.HELD:
        return "argosy rollout retry tries what is declared again"
    if rollout.phase == Phase.ROLLING_BACK:
        return "the candidate is being taken back"
    return "declare a new version"


def _name(held: HeldRevision) -> str:
    return revision_in_words(held.revision, held.version)


def _paused_by_spec(member: Member) -> bool:
    return bool((member.spec.get("rollout") or {}).get("paused"))


def _once(revision: str, now: datetime) -> str:
    return f"{revision}{FURTHER}{timestamp(now)}"

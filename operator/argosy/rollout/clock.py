"""The clock of a step: it stands still while a rollout is paused, and does not follow jumps of the time of day."""

from dataclasses import replace
from datetime import datetime, timedelta

from argosy.rollout.state import RolloutState

_MILLISECOND = timedelta(milliseconds=1)
LONGEST_GAP = timedelta(minutes=2)
"""Between two readings. A longer gap is a jump of the clock, or a time without an operator: it does not count."""
READING = timedelta(seconds=30)
"""A rollout is advanced at least once in this time; a restarted operator knows the last reading this precisely."""


def read(state: RolloutState, now: datetime, stopped: bool) -> RolloutState:
    """Return the state with its clock read at `now`, running or stopped."""
    state = _without_jump(state, now)
    if stopped and state.paused_at is None:
        return replace(state, paused_at=now)
    if not stopped and state.paused_at is not None:
        stood = max(now - state.paused_at, timedelta())
        return replace(state, paused_at=None, paused_for=state.paused_for + stood // _MILLISECOND * _MILLISECOND)
    return state


def restarted(state: RolloutState, now: datetime) -> RolloutState:
    """Return the state with a clock that starts at `now`."""
    return replace(state, since=now, paused_at=None, paused_for=timedelta(), observed_at=now)


def elapsed(state: RolloutState, now: datetime) -> timedelta:
    """Return how long the present step has lasted, without pauses."""
    return max((state.paused_at or now) - state.since - state.paused_for, timedelta())


def due(state: RolloutState, after: timedelta) -> datetime:
    """Return when the present step will have lasted `after` if its clock runs on."""
    return state.since + state.paused_for + after


def _without_jump(state: RolloutState, now: datetime) -> RolloutState:
    """Move the beginning of the step by a jump of the time of day since the last reading."""
    if state.observed_at is None:
        return replace(state, observed_at=now, since=min(state.since, now))
    gap = now - state.observed_at
    if timedelta() <= gap < READING:
        return state
    if timedelta() <= gap <= LONGEST_GAP:
        return replace(state, observed_at=now)
    paused_at = state.paused_at + gap if state.paused_at is not None else None
    return replace(state, observed_at=now, since=state.since + gap, paused_at=paused_at)

"""What is to be done in a state: weights, versions to have loaded, mirroring, and when to look again."""

from collections.abc import Mapping
from datetime import datetime

from argosy.rollout import clock
from argosy.rollout.context import Context
from argosy.rollout.state import ALL_TRAFFIC, PROVING, Action, Phase


def action(context: Context, at_once: bool = False) -> Action:
    """Return what is to be done. `at_once`: a further transition is due."""
    state = context.state
    shadow = context.shadow if state.phase is Phase.SHADOWING else None
    trial = context.trial
    return Action(
        weights=_weights(context),
        keep=_keep(context),
        shadow=shadow.traffic if shadow is not None else None,
        steps=len(context.steps),
        min_requests=trial.min_requests if trial is not None else 0,
        wake=context.now if at_once else _wake(context),
    )


def _weights(context: Context) -> Mapping[int, int]:
    state = context.state
    stable, candidate = state.stable, state.candidate
    if stable is None or candidate is None or stable.version == candidate.version:
        only = candidate if stable is None or (state.phase in PROVING and candidate is not None) else stable
        return {only.version: ALL_TRAFFIC} if only is not None else {}
    share = _share(context)
    return {stable.version: ALL_TRAFFIC - share, candidate.version: share}


def _share(context: Context) -> int:
    """Return the candidate's share of the traffic, in millionths."""
    phase = context.state.phase
    if phase is Phase.PROMOTING:
        return ALL_TRAFFIC
    if phase in PROVING and not context.loads_both:
        return ALL_TRAFFIC  # nothing else is loaded
    if phase is not Phase.STEPPING:
        return 0
    trial = context.trial
    return trial.traffic if trial is not None else 0


def _keep(context: Context) -> frozenset[int]:
    state = context.state
    both = [revision.version for revision in (state.stable, state.candidate) if revision is not None]
    if state.stable is None or state.candidate is None:
        return frozenset(both)
    if state.phase is Phase.ROLLING_BACK:
        gone = context.inputs.stable_ready or not context.inputs.together
        return frozenset({state.stable.version}) if gone else frozenset(both)
    return frozenset(both) if context.loads_both else frozenset({state.candidate.version})


def _wake(context: Context) -> datetime | None:
    """Return when the clock must be read again, or something is due before that."""
    state = context.state
    if not state.under_way:
        return None
    latest = context.now + clock.READING
    trial = context.trial
    if trial is None or context.stopped:
        return latest
    due = [clock.due(state, after) for after in (trial.duration, context.timeout)]
    return min([time for time in due if time > context.now] + [latest])

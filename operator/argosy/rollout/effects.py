"""What transitions do to the state of a rollout, and the Events that report them."""

from collections.abc import Callable
from dataclasses import replace

from argosy.api.values.quantity import format_percent
from argosy.rollout import clock
from argosy.rollout.context import Context
from argosy.rollout.requests import handled
from argosy.rollout.state import (
    Ending,
    FailedRevision,
    FailureFact,
    Phase,
    Record,
    Revision,
    RolloutEvent,
    RolloutInputs,
    RolloutState,
    Waiting,
)

Events = tuple[RolloutEvent, ...]
Effect = Callable[[Context, Phase], tuple[RolloutState, Events]]
MOST_FAILED, MOST_RECORDS = 20, 10
UNDONE = "Undone"
"""The reason of a revision that an annotation took back; it may be tried again once another one was declared."""


def initial(inputs: RolloutInputs) -> RolloutState:
    """Return the state before the first round: what is declared loads, next to what is known to serve."""
    if inputs.serving is None:
        return RolloutState(Phase.LOADING, inputs.now, candidate=inputs.declared, observed_at=inputs.now)
    return RolloutState(Phase.STABLE, inputs.now, stable=inputs.serving, observed_at=inputs.now)


def observed(state: RolloutState, inputs: RolloutInputs) -> RolloutState:
    """Return the state with the verdict on its present analysis, and without what no longer holds."""
    verdict = inputs.verdict
    if verdict is not None and verdict.analysis == state.analysis and verdict != state.verdict:
        state = replace(state, verdict=verdict)
    failed = tuple(
        entry for entry in state.failed if entry.reason != UNDONE or entry.revision.name == inputs.declared.name
    )
    return state if failed == state.failed else replace(state, failed=failed)


def start(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Begin with the declared revision as the candidate."""
    declared = context.inputs.declared
    state = _entered(context, target, f"revision {declared.name} (version {declared.version}) loads")
    state = replace(state, candidate=declared, number=state.number + 1, step=0, verdict=None)
    return state, _event("RolloutStarted", state.message)


def retry(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Begin again with a revision that was held."""
    released = _without_failure(context.state, context.inputs.declared)
    return start(replace(context, state=handled(released, context.inputs, "retry")), target)


def supersede(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Replace the candidate by the revision that is declared now."""
    before = _ended(context, Ending.SUPERSEDED, f"revision {context.inputs.declared.name} was declared")
    return start(replace(context, state=before), target)


def supersede_by_held(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Give up the candidate, for a revision that is not tried again."""
    before = _ended(context, Ending.SUPERSEDED, f"revision {context.inputs.declared.name} was declared")
    return hold(replace(context, state=before), target)


def withdraw(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Give up the candidate, because the stable revision is declared again."""
    before = _ended(context, Ending.WITHDRAWN, "the stable revision was declared again")
    state, _ = settle(replace(context, state=before), target)
    return state, _event("RolloutWithdrawn", f"{_name(context.state.candidate)} was withdrawn: {_serves(state)}")


def settle(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Rest with the stable revision."""
    state = replace(_entered(context, target, ""), candidate=None, step=0, verdict=None)
    return replace(state, message=_serves(state)), ()


def settle_first(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Take the first revision that serves as the stable one."""
    first = replace(context.state, stable=context.state.candidate)
    return settle(replace(context, state=first), target)


def hold(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Rest with the stable revision, because the declared one failed before."""
    state, _ = settle(context, target)
    state = replace(state, message=held_message(state, context.inputs.declared))
    return state, _event("RolloutHeld", state.message, warning=True)


def rest(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Rest with the stable revision once the candidate is gone."""
    declares_stable = context.declares_stable()
    return settle(context, target) if declares_stable else hold(context, target)


def mirror(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Begin to mirror requests to the candidate."""
    share = context.shadow.traffic if context.shadow is not None else 0
    state = replace(
        _entered(context, target, f"{_percent(share)} of requests are mirrored to it"), step=0, verdict=None
    )
    return state, _event("ShadowStarted", f"{_name(state.candidate)}: {state.message}")


def first_step(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Give the candidate the first step's share."""
    return _step(context, target, 0)


def next_step(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Give the candidate the next step's share."""
    return _step(context, target, context.state.step + 1)


def _step(context: Context, target: Phase, step: int) -> tuple[RolloutState, Events]:
    steps = context.steps
    message = f"step {step + 1} of {len(steps)}: {_percent(steps[step].traffic)} of requests"
    state = replace(_entered(context, target, message), step=step, verdict=None)
    return state, _event("RolloutStep", f"{_name(state.candidate)}: {message}")


def promote(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Give the candidate all traffic."""
    return _entered(context, target, "it gets all requests"), ()


def by_hand(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Give the candidate all traffic, because an annotation says so."""
    state = handled(_entered(context, target, "promoted by hand: it gets all requests"), context.inputs, "promote")
    return state, _event("PromotedByHand", f"{_name(state.candidate)}: {state.message}")


def finish(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Make the candidate the stable revision."""
    candidate = context.state.candidate
    verdict = context.state.verdict
    message = verdict.message if verdict is not None and verdict.message else context.state.message
    ended = _ended(context, Ending.PROMOTED, message)
    if candidate is not None:
        ended = replace(_without_failure(ended, candidate), stable=candidate, former=context.state.stable)
    state, _ = settle(replace(context, state=ended), target)
    return state, _event("Promoted", state.message)


def convict(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Go back, because of the verdict."""
    verdict = context.state.verdict
    reason = verdict.reason if verdict is not None and verdict.reason else "AnalysisFailed"
    return _go_back(context, target, FailureFact(reason, verdict.message if verdict is not None else ""))


def break_off(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Go back, because the candidate failed to load or run."""
    return _go_back(context, target, context.inputs.candidate_failed or FailureFact("Failed"))


def give_up(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Go back, because there was no verdict in time."""
    verdict = context.state.verdict
    reported = f": {verdict.message}" if verdict is not None and verdict.message else ""
    return _go_back(context, target, FailureFact("Inconclusive", f"no verdict within analysis.timeout{reported}"))


def undo(context: Context, target: Phase) -> tuple[RolloutState, Events]:
    """Go back, because an annotation says so."""
    current = context.state.candidate or context.state.stable
    previous = context.previous
    moved = replace(context.state, candidate=current, stable=previous, former=None)
    if previous is not None:
        moved = _without_failure(moved, previous)
    moved = handled(moved, context.inputs, "undo")
    fact = FailureFact(UNDONE, "taken back by the annotation argosy.dev/undo, until another revision is declared")
    return _go_back(replace(context, state=moved), target, fact, Ending.UNDONE)


def _go_back(
    context: Context, target: Phase, fact: FailureFact, ending: Ending = Ending.ROLLED_BACK
) -> tuple[RolloutState, Events]:
    candidate = context.state.candidate
    message = f"{fact.reason}: {fact.message}" if fact.message else fact.reason
    state = _ended(context, ending, message)
    if candidate is not None:
        entry = FailedRevision(candidate, fact.reason, fact.message, context.now)
        state = _without_failure(state, candidate)
        state = replace(state, failed=(entry, *state.failed)[:MOST_FAILED])
    state = _entered(replace(context, state=state), target, message)
    text = f"{_name(candidate)} is taken back, {_name(state.stable)} gets all requests: {message}"
    return state, _event("RolledBack", text, warning=True)


def _entered(context: Context, target: Phase, message: str) -> RolloutState:
    state = clock.restarted(context.state, context.now)
    return replace(state, phase=target, waiting=Waiting.NOTHING, message=message)


def _ended(context: Context, ending: Ending, message: str) -> RolloutState:
    """Return the state with a record of its candidate."""
    state = context.state
    if state.candidate is None:
        return state
    record = Record(state.candidate, ending, message, context.now)
    return replace(state, history=(record, *state.history)[:MOST_RECORDS])


def _without_failure(state: RolloutState, revision: Revision) -> RolloutState:
    return replace(state, failed=tuple(entry for entry in state.failed if entry.revision.name != revision.name))


def held_message(state: RolloutState, declared: Revision) -> str:
    """Return that a declared revision is not tried again, why, and what to do."""
    failed = state.failure_of(declared)
    why = f" ({failed.reason}{': ' + failed.message if failed.message else ''})" if failed is not None else ""
    return (
        f"{_name(declared)} is held{why}; {_serves(state)}. Declare another one, or try it again with the annotation "
        f"argosy.dev/retry: {declared.name}"
    )


def _serves(state: RolloutState) -> str:
    return f"{_name(state.stable)} serves"


def _name(revision: Revision | None) -> str:
    return f"revision {revision.name} (version {revision.version})" if revision is not None else "nothing"


def _percent(millionths: int) -> str:
    return format_percent(millionths // 1000)


def _event(reason: str, message: str, warning: bool = False) -> Events:
    return (RolloutEvent(reason, message, warning),)

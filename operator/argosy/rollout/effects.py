"""What transitions do to the state of a rollout."""

from collections.abc import Callable
from dataclasses import replace

from argosy.api.rolloutstatus import revision_in_words
from argosy.api.values.quantity import THOUSANDTHS, format_percent
from argosy.rollout import clock
from argosy.rollout.context import Context
from argosy.rollout.records import retained
from argosy.rollout.requests import REQUESTS, handled, spent
from argosy.rollout.state import (
    ALL_TRAFFIC,
    Ending,
    FailedRevision,
    FailureFact,
    Phase,
    Record,
    Revision,
    RolloutInputs,
    RolloutState,
    Waiting,
)

Effect = Callable[[Context, Phase], RolloutState]
MOST_FAILED, MOST_RECORDED = 20, 10
"""Failed revisions; measurements of an earlier rollout."""
BY_HAND = "promoted by hand"
UNDONE = "Undone"
"""The reason of a revision that an annotation took back; it may be tried again once another one was declared."""


def initial(inputs: RolloutInputs) -> RolloutState:
    """Return the state before the first round: what is declared loads, next to what is known to serve."""
    if inputs.serving is None:
        return RolloutState(Phase.LOADING, inputs.now, candidate=inputs.declared, observed_at=inputs.now)
    served = Record(inputs.serving, Ending.PROMOTED, "it served when its rollouts began", inputs.now)
    return RolloutState(Phase.STABLE, inputs.now, stable=inputs.serving, observed_at=inputs.now, history=(served,))


def observed(state: RolloutState, inputs: RolloutInputs) -> RolloutState:
    """Return the state with the verdict on its present analysis, and without what no longer holds."""
    verdict = inputs.verdict
    if verdict is not None and verdict.analysis == state.analysis and verdict != state.verdict:
        state = replace(state, verdict=verdict)
    failed = tuple(
        entry for entry in state.failed if entry.reason != UNDONE or entry.revision.name == inputs.declared.name
    )
    return state if failed == state.failed else replace(state, failed=failed)


def start(context: Context, target: Phase) -> RolloutState:
    """Begin with the declared revision as the candidate."""
    declared = context.inputs.declared
    state = spent(_entered(context, target, f"{_name(declared)} loads"), context.inputs, declared, "undo", "retry")
    return replace(state, candidate=declared, number=state.number + 1, step=0, verdict=None, by_hand=False)


def retry(context: Context, target: Phase) -> RolloutState:
    """Begin again with a revision that was held."""
    released = _without_failure(context.state, context.inputs.declared)
    return start(replace(context, state=handled(released, context.inputs, "retry")), target)


def supersede(context: Context, target: Phase) -> RolloutState:
    """Replace the candidate by the revision that is declared now."""
    before = _ended(context, Ending.SUPERSEDED, f"revision {context.inputs.declared.name} was declared")
    return start(replace(context, state=before), target)


def supersede_by_held(context: Context, target: Phase) -> RolloutState:
    """Give up the candidate, for a revision that is not tried again."""
    before = _ended(context, Ending.SUPERSEDED, f"revision {context.inputs.declared.name} was declared")
    return hold(replace(context, state=before), target)


def withdraw(context: Context, target: Phase) -> RolloutState:
    """Give up the candidate, because the stable revision is declared again."""
    before = _ended(context, Ending.WITHDRAWN, "the stable revision was declared again")
    return settle(replace(context, state=before), target)


def settle(context: Context, target: Phase) -> RolloutState:
    """Rest with the stable revision. The last verdict stays in the state."""
    state = replace(_entered(context, target, ""), candidate=None, step=0)
    return replace(state, message=serving_message(state))


def settle_first(context: Context, target: Phase) -> RolloutState:
    """Take the first revision that serves as the stable one."""
    ended = _ended(context, Ending.PROMOTED, "it is the first one")
    first = replace(ended, stable=context.state.candidate)
    return settle(replace(context, state=first), target)


def hold(context: Context, target: Phase) -> RolloutState:
    """Rest with the stable revision, because the declared one failed before."""
    state = settle(context, target)
    return replace(state, message=held_message(state, context.inputs))


def mirror(context: Context, target: Phase) -> RolloutState:
    """Begin to mirror requests to the candidate."""
    share = context.shadow.traffic if context.shadow is not None else 0
    message = f"{_percent(share)} of requests are mirrored to it"
    return replace(_entered(context, target, message), step=0, verdict=None)


def first_step(context: Context, target: Phase) -> RolloutState:
    """Give the candidate the first step's share."""
    return _step(context, target, 0)


def next_step(context: Context, target: Phase) -> RolloutState:
    """Give the candidate the next step's share."""
    return _step(context, target, context.state.step + 1)


def _step(context: Context, target: Phase, step: int) -> RolloutState:
    steps = context.steps
    message = f"step {step + 1} of {len(steps)}: {_percent(steps[step].traffic)} of requests"
    return replace(_entered(context, target, message), step=step, verdict=None)


def promote(context: Context, target: Phase) -> RolloutState:
    """Give the candidate all traffic."""
    return _entered(context, target, "it gets all requests")


def by_hand(context: Context, target: Phase) -> RolloutState:
    """Give the candidate all traffic, because an annotation says so."""
    state = replace(_entered(context, target, f"{BY_HAND}: it gets all requests"), by_hand=True)
    return handled(state, context.inputs, "promote")


def finish(context: Context, target: Phase) -> RolloutState:
    """Make the candidate the stable revision."""
    candidate, verdict = context.state.candidate, context.state.verdict
    if candidate is None:
        return settle(context, target)
    reported = verdict.message if verdict is not None else ""
    because = BY_HAND if context.state.by_hand else ""
    ended = _ended(context, Ending.PROMOTED, "; ".join(filter(None, (because, reported))))
    ended = replace(_without_failure(ended, candidate), stable=candidate, former=context.state.stable)
    return settle(replace(context, state=ended), target)


def convict(context: Context, target: Phase) -> RolloutState:
    """Go back, because of the verdict."""
    verdict = context.state.verdict
    reason = verdict.reason if verdict is not None and verdict.reason else "AnalysisFailed"
    return _go_back(context, target, FailureFact(reason, verdict.message if verdict is not None else ""))


def break_off(context: Context, target: Phase) -> RolloutState:
    """Go back, because the candidate failed to load or run."""
    return _go_back(context, target, context.inputs.candidate_failed or FailureFact("Failed"))


def give_up(context: Context, target: Phase) -> RolloutState:
    """Go back, because there was no verdict in time."""
    verdict = context.state.verdict
    reported = f": {verdict.message}" if verdict is not None and verdict.message else ""
    return _go_back(context, target, FailureFact("Inconclusive", f"no verdict within analysis.timeout{reported}"))


def undo(context: Context, target: Phase) -> RolloutState:
    """Go back, because an annotation says so."""
    current = context.state.candidate or context.state.stable
    previous = context.previous
    moved = replace(context.state, candidate=current, stable=previous, former=None)
    if previous is not None:
        moved = _without_failure(moved, previous)
    moved = handled(moved, context.inputs, "undo")
    fact = FailureFact(UNDONE, "taken back by the annotation argosy.dev/undo, until another revision is declared")
    return _go_back(replace(context, state=moved), target, fact, Ending.UNDONE)


def _go_back(context: Context, target: Phase, fact: FailureFact, ending: Ending = Ending.ROLLED_BACK) -> RolloutState:
    candidate = context.state.candidate
    named = fact.message and fact.reason != ending  # a history has the ending next to the message
    message = f"{fact.reason}: {fact.message}" if named else fact.message or fact.reason
    state = _ended(context, ending, message)
    if candidate is not None:
        entry = FailedRevision(candidate, fact.reason, fact.message, context.now)
        state = _without_failure(state, candidate)
        state = replace(state, failed=(entry, *state.failed)[:MOST_FAILED])
    return replace(_entered(replace(context, state=state), target, message), step=0)


def _entered(context: Context, target: Phase, message: str) -> RolloutState:
    state = clock.restarted(context.state, context.now)
    return replace(state, phase=target, waiting=Waiting.NOTHING, message=message)


def _ended(context: Context, ending: Ending, message: str) -> RolloutState:
    """Return the state with a record of its candidate, and of the verdict on it. Requests that name it are over."""
    state = context.state
    if state.candidate is None:
        return state
    verdict = state.verdict
    if verdict is not None:
        verdict = replace(verdict, measurements=verdict.measurements[:MOST_RECORDED])
    record = Record(state.candidate, ending, message, context.now, verdict)
    state = spent(state, context.inputs, state.candidate, *REQUESTS)
    return replace(state, history=retained((record, *state.history)))


def _without_failure(state: RolloutState, revision: Revision) -> RolloutState:
    return replace(state, failed=tuple(entry for entry in state.failed if entry.revision.name != revision.name))


def held_message(state: RolloutState, inputs: RolloutInputs) -> str:
    """Return that a declared revision is not tried again, why, and what to do."""
    declared = inputs.declared
    failed = state.failure_of(declared)
    why = f" ({failed.reason}{': ' + failed.message if failed.message else ''})" if failed is not None else ""
    return (
        f"{_name(declared)} is held{why}; {serving_message(state)}. Declare another one, or try it again"
        f"{retry_command(inputs, declared)} with the annotation argosy.dev/retry: {declared.name}"
    )


def retry_command(inputs: RolloutInputs, revision: Revision) -> str:
    """Return the command that tries a revision again; empty where it is not known how commands name the member."""
    return f" by `argosy rollout retry {inputs.resource} --revision {revision.name}` or" if inputs.resource else ""


def serving_message(state: RolloutState) -> str:
    """Return that the stable revision serves."""
    return f"{_name(state.stable)} serves"


def _name(revision: Revision | None) -> str:
    return revision_in_words(revision.name, revision.version) if revision is not None else "nothing"


def _percent(millionths: int) -> str:
    return format_percent(millionths * THOUSANDTHS // ALL_TRAFFIC)

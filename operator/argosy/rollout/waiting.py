"""What a rollout waits for while its phase lasts."""

from dataclasses import replace

from argosy.api.values.quantity import format_duration
from argosy.rollout.context import Context
from argosy.rollout.effects import BY_HAND, held_message, serving_message
from argosy.rollout.state import FailureFact, Phase, RolloutState, Waiting
from argosy.rollout.trials import Trial


def waiting(context: Context) -> RolloutState:
    """Return the state with what it waits for, and the message that says so."""
    state = context.state
    if state.phase is Phase.HELD and context.declares_failed():
        reason, message = "", held_message(state, context.inputs)
    elif state.under_way:
        reason, message = _reason(context)
    elif state.stable is not None and (state.message or context.undo_refusal):
        reason, message = "", serving_message(state)
    else:
        return state
    if context.undo_refusal not in message:
        message = f"{message}; {context.undo_refusal}"
    return (
        state
        if (state.waiting, state.message) == (reason, message)
        else replace(state, waiting=reason, message=message)
    )


def _reason(context: Context) -> tuple[str, str]:
    state, inputs = context.state, context.inputs
    if state.phase is Phase.ROLLING_BACK:
        return Waiting.UNLOADED, _rolling_back(context)
    if inputs.unrelated is not None:
        return inputs.unrelated.reason, _fact("stopped", inputs.unrelated)
    if inputs.candidate_failed is not None:
        return inputs.candidate_failed.reason, _fact("it fails", inputs.candidate_failed)
    if not inputs.candidate_ready:
        return Waiting.LOADED, "it is not loaded yet on every server that is to have it"
    if state.phase is Phase.PROMOTING:
        by_hand = f"{BY_HAND}; " if state.by_hand else ""
        return Waiting.TRAFFIC, f"{by_hand}servers do not divide requests as desired yet"
    if context.paused:
        return (
            Waiting.PAUSED,
            "paused by spec.rollout.paused or the annotation argosy.dev/pause; its clock stands still",
        )
    trial = context.trial
    if trial is None:
        return Waiting.NOTHING, state.message
    return _for_trial(context, trial)


def _for_trial(context: Context, trial: Trial) -> tuple[str, str]:
    verdict = context.state.verdict
    is_present = verdict is not None and verdict.analysis == context.state.analysis
    reported = f": {verdict.message}" if verdict is not None and is_present and verdict.message else ""
    if context.is_overdue():
        limit = format_duration(context.analysis.timeout)
        return Waiting.INCONCLUSIVE, f"no verdict within {limit}{reported}; promote it by hand, undo it, or wait"
    if context.outcome is None or not context.outcome.passes:
        return Waiting.VERDICT, f"there is no verdict yet{reported}"
    if context.inputs.requests < trial.min_requests:
        return Waiting.REQUESTS, f"it has answered {context.inputs.requests} of {trial.min_requests} requests"
    return Waiting.DURATION, f"the step lasts {format_duration(round(trial.duration.total_seconds() * 1000))}"


def _rolling_back(context: Context) -> str:
    candidate = context.state.candidate
    why = context.state.failure_of(candidate) if candidate is not None else None
    because = f" ({why.reason}: {why.message})" if why is not None else ""
    if context.inputs.stable_ready:
        return f"taken back{because}; it is being unloaded"
    serves = "it answers" if context.inputs.candidate_loaded else "no revision is loaded"
    broken = context.inputs.stable_failed
    if broken is not None:
        fact = _fact("and the stable revision cannot be loaded", broken)
        return f"taken back{because}; {serves}, {fact}; mend that, or declare another revision"
    declared = context.inputs.declared
    further = f"; revision {declared.name} is tried once that one serves" if context.declares_new() else ""
    return f"taken back{because}; {serves} until the stable revision is loaded{further}"


def _fact(what: str, fact: FailureFact) -> str:
    return f"{what}: {fact.message or fact.reason}"

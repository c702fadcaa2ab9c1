"""The state machine of a rollout: a state, a spec and inputs become the next state, and what is to be done in it.

TRANSITIONS is the whole of it: of the rows of a phase, the first whose condition holds is taken, at most one each time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from argosy.api.model.rollout.rollout import Rollout
from argosy.rollout import clock, effects
from argosy.rollout.actions import action
from argosy.rollout.context import Context
from argosy.rollout.effects import Effect
from argosy.rollout.requests import handled
from argosy.rollout.state import Action, Phase, RolloutInputs, RolloutState
from argosy.rollout.waiting import waiting

Condition = Callable[[Context], bool]


@dataclass(frozen=True, slots=True)
class Transition:
    """A change from `source` to `target`, when all conditions hold; `when` says so in the diagram."""

    source: Phase
    target: Phase
    when: str
    conditions: tuple[Condition, ...]
    effect: Effect


def _has_shadow(context: Context) -> bool:
    return context.shadow is not None


def _has_steps(context: Context) -> bool:
    return bool(context.steps)


def _has_next(context: Context) -> bool:
    return context.state.step + 1 < len(context.steps)


def _is_loaded(context: Context) -> bool:
    return context.inputs.candidate_loaded


_C = Context
_STABLE, _LOADING, _SHADOWING, _STEPPING = Phase.STABLE, Phase.LOADING, Phase.SHADOWING, Phase.STEPPING
_PROMOTING, _PROMOTED, _ROLLING_BACK, _HELD = Phase.PROMOTING, Phase.PROMOTED, Phase.ROLLING_BACK, Phase.HELD


def _failing(source: Phase) -> tuple[Transition, ...]:
    """Return the transitions of a candidate that failed. They come first, whatever is declared or asked for in the same
    round, so that a failure is not forgotten.
    """
    convicted = Transition(source, _ROLLING_BACK, "the verdict is Failed", (_C.is_convicted,), effects.convict)
    return (
        Transition(source, _ROLLING_BACK, "it fails to load or run", (_C.failed_to_run,), effects.break_off),
        *((convicted,) if source is not _LOADING else ()),
    )


def _changing(source: Phase) -> tuple[Transition, ...]:
    """Return the transitions by which a candidate that may still be promoted gives way."""
    return (
        Transition(source, _STABLE, "the stable revision is declared again", (_C.declares_stable,), effects.withdraw),
        Transition(source, _ROLLING_BACK, "the annotation undo names it", (_C.is_undone,), effects.undo),
        Transition(source, _HELD, "a held revision is declared", (_C.declares_held,), effects.supersede_by_held),
        Transition(source, _LOADING, "another revision is declared", (_C.declares_new,), effects.supersede),
    )


TRANSITIONS: tuple[Transition, ...] = (
    # At rest
    Transition(_STABLE, _ROLLING_BACK, "the annotation undo names it", (_C.is_undone,), effects.undo),
    Transition(_STABLE, _HELD, "a held revision is declared", (_C.declares_held,), effects.hold),
    Transition(_STABLE, _LOADING, "another revision is declared", (_C.declares_new,), effects.start),
    Transition(_PROMOTED, _ROLLING_BACK, "the annotation undo names it", (_C.is_undone,), effects.undo),
    Transition(_PROMOTED, _HELD, "a held revision is declared", (_C.declares_held,), effects.hold),
    Transition(_PROMOTED, _LOADING, "another revision is declared", (_C.declares_new,), effects.start),
    Transition(_HELD, _STABLE, "the stable revision is declared again", (_C.declares_stable,), effects.settle),
    Transition(_HELD, _LOADING, "the annotation retry names it", (_C.is_retried,), effects.retry),
    Transition(_HELD, _LOADING, "another revision is declared", (_C.declares_new,), effects.start),
    # Loading
    Transition(_LOADING, _STABLE, "the first revision is ready", (_C.is_first, _C.is_ready), effects.settle_first),
    Transition(
        _LOADING,
        _STABLE,
        "another revision is declared while the first one serves",
        (_C.is_first, _C.declares_other, _is_loaded),
        effects.settle_first,
    ),
    *_failing(_LOADING),
    *_changing(_LOADING),
    Transition(_LOADING, _PROMOTING, "the annotation promote names it", (_C.is_promoted_by_hand,), effects.by_hand),
    Transition(_LOADING, _SHADOWING, "ready, with spec.rollout.shadow", (_C.may_start, _has_shadow), effects.mirror),
    Transition(_LOADING, _STEPPING, "ready, with steps", (_C.may_start, _has_steps), effects.first_step),
    Transition(_LOADING, _PROMOTING, "ready, and nothing to prove", (_C.may_start,), effects.promote),
    # Shadowing
    *_failing(_SHADOWING),
    *_changing(_SHADOWING),
    Transition(_SHADOWING, _PROMOTING, "the annotation promote names it", (_C.is_promoted_by_hand,), effects.by_hand),
    Transition(_SHADOWING, _STEPPING, "passed, with steps", (_C.passes, _has_steps), effects.first_step),
    Transition(_SHADOWING, _PROMOTING, "passed, without steps", (_C.passes,), effects.promote),
    Transition(_SHADOWING, _ROLLING_BACK, "no verdict in time, Rollback", (_C.is_to_go_back,), effects.give_up),
    # Stepping
    *_failing(_STEPPING),
    *_changing(_STEPPING),
    Transition(_STEPPING, _PROMOTING, "the annotation promote names it", (_C.is_promoted_by_hand,), effects.by_hand),
    Transition(_STEPPING, _STEPPING, "passed, and not the last step", (_C.passes, _has_next), effects.next_step),
    Transition(_STEPPING, _PROMOTING, "passed the last step", (_C.passes,), effects.promote),
    Transition(_STEPPING, _ROLLING_BACK, "no verdict in time, Rollback", (_C.is_to_go_back,), effects.give_up),
    # Promoting
    *_failing(_PROMOTING),
    Transition(
        _PROMOTING,
        _PROMOTED,
        "another revision is declared while it is ready",
        (_C.declares_other, _C.is_ready),
        effects.finish,
    ),
    *_changing(_PROMOTING),
    Transition(_PROMOTING, _PROMOTED, "all traffic reaches it", (_C.is_switched,), effects.finish),
    # Rolling back
    Transition(
        _ROLLING_BACK,
        _LOADING,
        "another revision is declared, and the stable one is ready, or fails to load",
        (_C.declares_new, _C.is_back),
        effects.start,
    ),
    Transition(
        _ROLLING_BACK,
        _STABLE,
        "the candidate is unloaded, and the stable revision is declared",
        (_C.is_unloaded, _C.declares_stable),
        effects.settle,
    ),
    Transition(_ROLLING_BACK, _HELD, "the candidate is unloaded", (_C.is_unloaded,), effects.hold),
)


def advance(state: RolloutState | None, spec: Rollout | None, inputs: RolloutInputs) -> tuple[RolloutState, Action]:
    """Return the next state of a rollout, and what is to be done in it.

    Every state and all inputs have an answer. `state` is None before the first round. At most one transition happens;
    where a further one is due at once, the action's `wake` is `now`.
    """
    state = effects.initial(inputs) if state is None else effects.observed(state, inputs)
    context = Context(state, spec, inputs)
    context = Context(clock.read(state, inputs.now, context.stopped), spec, inputs)
    taken = _taken(context)
    if taken is None:
        state = handled(waiting(context), inputs)
        return state, action(Context(state, spec, inputs))
    entered = Context(handled(taken.effect(context, taken.target), inputs), spec, inputs)
    context = Context(clock.read(entered.state, inputs.now, entered.stopped), spec, inputs)
    return context.state, action(context, at_once=_taken(context) is not None)


def _taken(context: Context) -> Transition | None:
    """Return the first transition whose conditions hold; None if the phase lasts."""
    return next(
        (
            transition
            for transition in TRANSITIONS
            if transition.source is context.state.phase and all(holds(context) for holds in transition.conditions)
        ),
        None,
    )

"""A rollout from the first load to the last step, and back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from argosy.api.model.rollout.rollout import Rollout
from argosy.rollout.machine import advance
from argosy.rollout.state import FailureFact, Phase, Revision, RolloutInputs, RolloutState
from argosy.rollout.verdict import Outcome, Verdict

START = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = Revision("one", 1), Revision("two", 2)
STEPS = Rollout.model_validate({"steps": [{"traffic": "5%"}, {"traffic": "50%"}]})
SERVING = RolloutState(Phase.STABLE, START, stable=ONE)
READY = RolloutInputs(TWO, START, candidate_ready=True, candidate_loaded=True)


def judged(state: RolloutState, outcome: Outcome) -> Verdict:
    return Verdict(outcome, state.analysis, "errorRate", "3 of 100 requests failed")


def test_a_candidate_passes_its_steps_and_is_promoted() -> None:
    state, action = advance(SERVING, STEPS, RolloutInputs(TWO, START))
    assert (state.phase, action.weights) == (Phase.LOADING, {1: 1_000_000, 2: 0})
    now = START
    seen = []
    for _ in range(8):
        verdict = judged(state, Outcome.SUCCESSFUL)
        state, action = advance(state, STEPS, replace(READY, now=now, verdict=verdict))
        seen.append((state.phase, state.step, action.weights[2], action.keep))
        now += timedelta(seconds=45)
    both = frozenset({1, 2})
    assert seen == [
        (Phase.STEPPING, 0, 50_000, both),
        (Phase.STEPPING, 0, 50_000, both),
        (Phase.STEPPING, 1, 500_000, both),
        (Phase.STEPPING, 1, 500_000, both),
        (Phase.PROMOTING, 1, 1_000_000, both),
        (Phase.PROMOTED, 0, 1_000_000, frozenset({2})),
        (Phase.PROMOTED, 0, 1_000_000, frozenset({2})),
        (Phase.PROMOTED, 0, 1_000_000, frozenset({2})),
    ]
    assert (state.stable, state.former, action.wake) == (TWO, ONE, None)


def test_a_convicted_candidate_is_taken_back_at_once_and_held() -> None:
    state = RolloutState(Phase.STEPPING, START, stable=ONE, candidate=TWO, number=1)
    state, action = advance(state, STEPS, replace(READY, verdict=judged(state, Outcome.FAILED)))
    assert (state.phase, action.weights) == (Phase.ROLLING_BACK, {1: 1_000_000, 2: 0})
    assert action.keep == {1}
    assert state.history[0].verdict == state.verdict
    state, action = advance(state, STEPS, replace(READY, candidate_loaded=False))
    assert (state.phase, action.weights, action.wake) == (Phase.HELD, {1: 1_000_000}, None)
    again, _ = advance(state, STEPS, READY)
    assert again.phase is Phase.HELD
    assert again.failed[0].revision == TWO


def test_without_a_rollout_a_candidate_that_does_not_load_waits_and_one_that_does_serves() -> None:
    state = RolloutState(Phase.LOADING, START, stable=ONE, candidate=TWO, number=1)
    failed = RolloutInputs(TWO, START, candidate_failed=FailureFact("LoadFailed", "no such file"))
    waits, action = advance(state, None, failed)
    assert (waits.phase, waits.waiting, action.weights) == (Phase.LOADING, "LoadFailed", {1: 1_000_000, 2: 0})
    state, _ = advance(waits, None, READY)
    state, action = advance(state, None, READY)
    assert (state.phase, action.weights) == (Phase.PROMOTED, {2: 1_000_000})

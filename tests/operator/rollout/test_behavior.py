"""Clocks, pauses, verdicts that do not count, pushes in the middle, and strategies that cannot divide requests."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.operator.rollout.stepping import GOOD, NOW, ONE, READY, STEPPING, THREE, TWO, spec

from argosy.api.model.rollout.rollout import Rollout
from argosy.rollout.clock import elapsed
from argosy.rollout.machine import advance
from argosy.rollout.state import Action, FailedRevision, FailureFact, Phase, Revision, RolloutInputs, RolloutState
from argosy.rollout.verdict import Outcome, Verdict

MINUTE = timedelta(minutes=1)


def later(
    state: RolloutState, minutes: int, rollout: Rollout, inputs: RolloutInputs = READY
) -> tuple[RolloutState, Action]:
    """Advance once a minute, as an operator does at least, while a step lasts."""
    action = None
    for minute in range(minutes + 1):
        now = (state.observed_at or NOW) if minute == 0 else inputs.now + MINUTE
        inputs = replace(inputs, now=now)
        state, action = advance(state, rollout, inputs)
        if state.phase is not Phase.STEPPING:
            break
    assert action is not None
    return state, action


def test_a_step_lasts_as_long_as_its_pause_says_although_the_verdict_is_there() -> None:
    state, action = later(STEPPING, 4, spec(), replace(READY, verdict=GOOD))
    assert (state.step, state.waiting, state.message) == (0, "Duration", "the step lasts 5m")
    assert action.wake == NOW + timedelta(minutes=4, seconds=30)
    state, _ = later(STEPPING, 5, spec(), replace(READY, verdict=GOOD))
    assert state.step == 1


def test_a_verdict_on_another_step_or_rollout_does_not_count() -> None:
    for analysis in ("1/two/1", "2/two/0", "1/three/0", ""):
        stale = Verdict(Outcome.FAILED, analysis)
        state, _ = later(STEPPING, 9, spec(), replace(READY, verdict=stale))
        assert (state.phase, state.step, state.waiting) == (Phase.STEPPING, 0, "Verdict")


@pytest.mark.parametrize(
    ("fields", "requests", "waiting"),
    [
        ({"steps": [{"traffic": "5%", "minRequests": 500}]}, 499, "Requests"),
        ({"analysis": {"minRequests": 500}}, 499, "Requests"),
        ({"steps": [{"traffic": "5%", "minRequests": 10}], "analysis": {"minRequests": 500}}, 9, "Requests"),
        ({"steps": [{"traffic": "5%", "minRequests": 10}], "analysis": {"minRequests": 500}}, 10, ""),
        ({"analysis": {"minRequests": 500}}, 500, ""),
    ],
)
def test_requests_of_a_step_are_its_own_or_those_of_the_analysis(
    fields: dict[str, Any], requests: int, waiting: str
) -> None:
    state, _ = later(STEPPING, 6, spec(**fields), replace(READY, verdict=GOOD, requests=requests))
    assert (state.waiting == "Requests") is bool(waiting)
    assert (state.phase is Phase.STEPPING and state.step == 0) is bool(waiting)


def test_the_clock_stands_still_while_it_is_paused() -> None:
    state, _ = later(STEPPING, 2, spec(), replace(READY, verdict=GOOD))
    paused = replace(READY, verdict=GOOD, paused=True, now=NOW + 2 * MINUTE)
    state, _ = advance(state, spec(), paused)
    state, action = later(state, 300, spec(), paused)
    assert (state.waiting, state.step, action.weights) == ("Paused", 0, {1: 950_000, 2: 50_000})
    resumed = state
    for minute in range(3):
        at = NOW + timedelta(minutes=302 + minute)
        resumed, _ = advance(resumed, spec(), replace(paused, paused=False, now=at))
        assert (resumed.step, resumed.waiting) == (0, "Duration")
    resumed, _ = advance(resumed, spec(), replace(paused, paused=False, now=NOW + timedelta(minutes=305)))
    assert resumed.step == 1


def test_a_convicted_candidate_goes_back_although_it_is_paused() -> None:
    bad = Verdict(Outcome.FAILED, STEPPING.analysis, "errorRate", "1.2% of 500 requests failed")
    state, _ = advance(STEPPING, spec(paused=True), replace(READY, verdict=bad))
    assert (state.phase, state.failed[0].reason) == (Phase.ROLLING_BACK, "errorRate")


@pytest.mark.parametrize(
    "stopped",
    [
        {"unrelated": FailureFact("NodeLost", "node n-1 is not ready")},
        {"candidate_ready": False},
    ],
)
def test_time_without_a_ready_candidate_does_not_count(stopped: dict[str, Any]) -> None:
    rollout = spec(analysis={"timeout": "10m", "onInconclusive": "Rollback"})
    state, action = later(STEPPING, 60, rollout, replace(READY, **stopped))
    assert (state.phase, state.step) == (Phase.STEPPING, 0)
    assert state.waiting == ("NodeLost" if "unrelated" in stopped else "Loaded")
    assert action.weights == {1: 950_000, 2: 50_000}
    assert state.failed == ()


@pytest.mark.parametrize("jump", [timedelta(days=300), timedelta(days=-300), timedelta(minutes=3)])
def test_a_clock_that_jumps_moves_the_step_and_does_not_end_it(jump: timedelta) -> None:
    rollout = spec(analysis={"timeout": "10m", "onInconclusive": "Rollback"})
    state, _ = later(STEPPING, 2, rollout)
    at = NOW + 2 * MINUTE + jump
    state, _ = advance(state, rollout, replace(READY, now=at))
    assert (state.phase, state.waiting) == (Phase.STEPPING, "Verdict")
    state, _ = later(state, 7, rollout, replace(READY, now=at))
    assert state.phase is Phase.STEPPING
    state, _ = advance(state, rollout, replace(READY, now=at + 8 * MINUTE))
    assert (state.phase, state.failed[0].reason) == (Phase.ROLLING_BACK, "Inconclusive")


def test_an_operator_that_was_away_has_seen_no_time() -> None:
    rollout = spec(analysis={"timeout": "10m", "onInconclusive": "Rollback"})
    state, _ = later(STEPPING, 2, rollout)
    state, _ = advance(state, rollout, replace(READY, now=NOW + timedelta(hours=5)))
    assert state.phase is Phase.STEPPING


@pytest.mark.parametrize("outcome", [None, Outcome.INCONCLUSIVE, Outcome.ERROR])
@pytest.mark.parametrize(
    ("choice", "phase", "step", "waiting"),
    [
        ("Hold", Phase.STEPPING, 0, "Inconclusive"),
        ("Promote", Phase.STEPPING, 1, ""),
        ("Rollback", Phase.ROLLING_BACK, 0, ""),
    ],
)
def test_a_timeout_without_a_verdict_is_what_the_spec_says(
    outcome: Outcome | None, choice: str, phase: Phase, step: int, waiting: str
) -> None:
    rollout = spec(analysis={"timeout": "10m", "onInconclusive": choice})
    verdict = Verdict(outcome, STEPPING.analysis, "", "Prometheus does not answer") if outcome is not None else None
    state, _ = later(STEPPING, 9, rollout, replace(READY, verdict=verdict))
    assert (state.phase, state.step) == (Phase.STEPPING, 0)
    state, _ = advance(state, rollout, replace(READY, now=NOW + 10 * MINUTE, verdict=verdict))
    assert (state.phase, state.step, state.waiting) == (phase, step, waiting)
    if choice == "Hold":
        overdue = replace(READY, now=NOW + 11 * MINUTE, verdict=GOOD)
        assert advance(state, rollout, overdue)[0].step == 1, "a verdict that comes after the timeout still counts"
        by_hand, action = advance(state, rollout, replace(READY, now=NOW + 11 * MINUTE, promote="two"))
        assert (by_hand.phase, action.weights) == (Phase.PROMOTING, {1: 0, 2: 1_000_000})


@pytest.mark.parametrize("choice", ["Hold", "Rollback", "Promote"])
def test_a_candidate_that_passes_waits_for_its_requests_after_the_timeout_unless_that_promotes(choice: str) -> None:
    rollout = spec(analysis={"timeout": "10m", "onInconclusive": choice, "minRequests": 500})
    few = replace(READY, verdict=GOOD, requests=499)
    state, _ = later(STEPPING, 9, rollout, few)
    assert (state.waiting, state.message) == ("Requests", "it has answered 499 of 500 requests")
    state, _ = later(state, 2, rollout, replace(few, now=NOW + 9 * MINUTE))
    if choice == "Promote":
        assert state.step == 1
        return
    assert (state.phase, state.step, state.waiting) == (Phase.STEPPING, 0, "Requests")
    assert state.message == "it has answered 499 of 500 requests"
    state, _ = advance(state, rollout, replace(few, now=NOW + 12 * MINUTE, requests=500))
    assert state.step == 1


def test_a_second_push_replaces_the_candidate_and_the_first_gets_nothing_more() -> None:
    state, action = advance(STEPPING, spec(), replace(READY, declared=THREE))
    assert (state.phase, state.candidate, state.number) == (Phase.LOADING, THREE, 2)
    assert action.weights == {1: 1_000_000, 3: 0}
    assert action.keep == {1, 3}
    assert [(record.revision, record.outcome) for record in state.history] == [(TWO, "Superseded")]
    assert state.failed == ()


def test_a_push_while_the_candidate_is_promoted_begins_from_it() -> None:
    state = replace(STEPPING, phase=Phase.PROMOTING, step=1)
    state, action = advance(state, spec(), replace(READY, declared=THREE))
    assert (state.phase, state.stable, action.wake) == (Phase.PROMOTED, TWO, NOW)
    state, action = advance(state, spec(), replace(READY, declared=THREE, candidate_ready=False))
    assert (state.phase, action.weights) == (Phase.LOADING, {2: 1_000_000, 3: 0})


def test_a_revert_in_the_middle_is_no_rollout_and_no_failure() -> None:
    state, action = advance(STEPPING, spec(), replace(READY, declared=ONE))
    assert (state.phase, state.candidate, action.weights) == (Phase.STABLE, None, {1: 1_000_000})
    assert (state.failed, state.history[0].outcome) == ((), "Withdrawn")
    again, _ = advance(state, spec(), replace(READY, candidate_ready=False))
    assert (again.phase, again.number) == (Phase.LOADING, 2)


def test_servers_that_cannot_divide_requests_switch_all_of_them_and_are_judged() -> None:
    loading = replace(STEPPING, phase=Phase.LOADING)
    undivided = replace(READY, split=False)
    state, action = advance(loading, spec(), undivided)
    assert (state.phase, action.weights, action.keep) == (Phase.STEPPING, {1: 0, 2: 1_000_000}, {1, 2})
    assert state.message == "step 1 of 1: 100% of requests"
    state, _ = advance(state, spec(), replace(undivided, verdict=Verdict(Outcome.FAILED, state.analysis)))
    assert state.phase is Phase.ROLLING_BACK


def test_a_recreated_candidate_is_alone_until_it_is_taken_back() -> None:
    loading = replace(STEPPING, phase=Phase.LOADING)
    alone = replace(READY, together=False, candidate_ready=False, stable_ready=False)
    state, action = advance(loading, spec(), alone)
    assert (state.phase, action.weights, action.keep) == (Phase.LOADING, {1: 0, 2: 1_000_000}, {2})
    broken = replace(alone, candidate_failed=FailureFact("LoadFailed", "no such file"))
    state, action = advance(state, spec(), broken)
    assert (state.phase, action.weights, action.keep) == (Phase.ROLLING_BACK, {1: 1_000_000, 2: 0}, {1})


def test_servers_with_a_single_revision_divide_requests_as_replicas() -> None:
    loading = replace(STEPPING, phase=Phase.LOADING)
    apart = replace(READY, together=False, by_replicas=True)
    state, action = advance(loading, spec(shadow={"traffic": "10%"}), apart)
    assert (state.phase, action.keep) == (Phase.STEPPING, {1, 2}), "only a server with both mirrors requests"
    assert 0 < action.weights[2] < 1_000_000
    state, action = advance(loading, spec(), replace(apart, split=False))
    assert (action.keep, action.weights) == ({2}, {1: 0, 2: 1_000_000})


def test_a_candidate_that_cannot_be_mirrored_is_proven_by_a_step_of_that_share() -> None:
    loading, shadow = replace(STEPPING, phase=Phase.LOADING), Rollout.model_validate({"shadow": {"traffic": "10%"}})
    apart = replace(READY, together=False, by_replicas=True)
    state, action = advance(loading, shadow, apart)
    assert (state.phase, action.weights) == (Phase.STEPPING, {1: 900_000, 2: 100_000})
    state, _ = later(state, 9, shadow, replace(apart, verdict=Verdict(Outcome.SUCCESSFUL, state.analysis)))
    assert state.phase is Phase.STEPPING, "it lasts as long as mirroring would"
    state, _ = advance(state, shadow, replace(apart, now=NOW + 10 * MINUTE))
    assert state.phase is Phase.PROMOTING


def test_steps_that_are_replaced_by_mirroring_in_the_middle_promote_nothing_without_a_verdict() -> None:
    mirrored = Rollout.model_validate({"shadow": {"traffic": "10%", "duration": "5m"}})
    state, action = later(STEPPING, 9, mirrored)
    assert (state.phase, state.waiting, action.weights) == (Phase.STEPPING, "Verdict", {1: 900_000, 2: 100_000})
    state, _ = advance(state, mirrored, replace(READY, now=NOW + 10 * MINUTE, verdict=GOOD))
    assert state.phase is Phase.PROMOTING


def test_a_revision_with_the_stable_version_number_replaces_it() -> None:
    same = Revision("other", 1)
    state = RolloutState(Phase.STABLE, NOW, stable=ONE, observed_at=NOW)
    state, action = advance(state, spec(), RolloutInputs(same, NOW))
    assert (state.phase, action.weights, action.keep) == (Phase.LOADING, {1: 1_000_000}, {1})
    for _ in range(2):
        state, action = advance(state, spec(), replace(READY, declared=same))
    assert (state.phase, state.stable, action.weights) == (Phase.PROMOTED, same, {1: 1_000_000})


def test_what_serves_before_there_is_a_state_is_the_stable_revision() -> None:
    state, action = advance(None, spec(), RolloutInputs(TWO, NOW, serving=ONE))
    assert (state.phase, state.stable, state.candidate, action.keep) == (Phase.LOADING, ONE, TWO, {1, 2})
    state, action = advance(None, spec(), RolloutInputs(TWO, NOW))
    assert (state.phase, state.stable, action.weights) == (Phase.LOADING, None, {2: 1_000_000})


def test_the_first_revision_is_tried_until_it_loads_for_there_is_nothing_to_go_back_to() -> None:
    state, _ = advance(None, spec(), RolloutInputs(ONE, NOW))
    failed = RolloutInputs(ONE, NOW, candidate_failed=FailureFact("LoadFailed", "no such file"))
    state, _ = advance(state, spec(), failed)
    assert (state.phase, state.waiting, state.message) == (Phase.LOADING, "LoadFailed", "it fails: no such file")
    state, _ = advance(state, spec(), replace(READY, declared=ONE))
    assert (state.phase, state.message) == (Phase.STABLE, "revision one (version 1) serves")


@pytest.mark.parametrize("phase", list(Phase))
def test_a_member_whose_stable_spec_is_lost_serves_what_is_declared(phase: Phase) -> None:
    failed = FailedRevision(TWO, "CrashLoop", "it exited", NOW)
    state = replace(STEPPING, phase=phase, failed=(failed,)).without_stable()
    state, action = advance(state, spec(), replace(READY, candidate_ready=False))
    assert (state.phase, state.candidate, action.weights, action.keep) == (Phase.LOADING, TWO, {2: 1_000_000}, {2})
    state, _ = advance(state, spec(), READY)
    assert (state.phase, state.stable, state.failed) == (Phase.STABLE, TWO, (failed,))


def test_a_spec_that_loses_its_steps_in_the_middle_promotes() -> None:
    state, _ = advance(replace(STEPPING, step=1), Rollout(), READY)
    assert state.phase is Phase.PROMOTING
    state, _ = advance(replace(STEPPING, step=7), spec(), READY)
    assert (state.phase, state.waiting) == (Phase.STEPPING, "Verdict")


def test_a_candidate_that_is_taken_back_is_not_reported_so_for_another_ones_faults() -> None:
    other = FailedRevision(THREE, "LoadFailed", "no such file", NOW)
    state = replace(STEPPING, phase=Phase.ROLLING_BACK, failed=(other,))
    state, _ = advance(state, spec(), replace(READY, declared=ONE))
    assert state.message == "taken back; it is being unloaded"


def test_a_failure_is_not_forgotten_for_a_push_or_a_revert_in_the_same_round() -> None:
    bad = Verdict(Outcome.FAILED, STEPPING.analysis, "errorRate", "1.2% of 500 requests failed")
    for phase in (Phase.STEPPING, Phase.PROMOTING):
        before = replace(STEPPING, phase=phase)
        for declared, following in ((THREE, Phase.LOADING), (ONE, Phase.STABLE)):
            state, action = advance(before, spec(), replace(READY, declared=declared, verdict=bad))
            assert (state.phase, state.stable, action.weights) == (Phase.ROLLING_BACK, ONE, {1: 1_000_000, 2: 0})
            gone = replace(READY, declared=declared, candidate_ready=False, candidate_loaded=False)
            state, _ = advance(state, spec(), gone)
            assert state.phase is following
            again, _ = advance(state, spec(), replace(gone, declared=TWO))
            assert again.phase is Phase.HELD


def test_a_push_while_it_goes_back_is_tried_as_soon_as_the_stable_revision_serves() -> None:
    state = replace(STEPPING, phase=Phase.ROLLING_BACK, failed=(FailedRevision(TWO, "errorRate", "", NOW),))
    without = replace(READY, declared=THREE, stable_ready=False)
    waits, action = advance(state, spec(), without)
    assert (waits.phase, action.keep) == (Phase.ROLLING_BACK, {1, 2})
    assert waits.message.endswith("until the stable revision is loaded; revision three is tried once that one serves")
    begins, action = advance(state, spec(), replace(without, stable_ready=True))
    assert (begins.phase, begins.candidate, action.weights) == (Phase.LOADING, THREE, {1: 1_000_000, 3: 0})


def test_the_clock_of_a_step_that_begins_while_something_stops_it_stands_still_at_once() -> None:
    lost = replace(READY, unrelated=FailureFact("NodeLost"))
    state, _ = advance(replace(STEPPING, phase=Phase.LOADING), spec(), lost)
    assert state.phase is Phase.STEPPING
    for minutes in (1, 2):
        state, _ = advance(state, spec(), replace(lost, now=NOW + minutes * MINUTE))
        assert elapsed(state, NOW + minutes * MINUTE) == timedelta()


def test_a_push_is_tried_although_the_stable_revision_can_no_longer_be_loaded() -> None:
    failed = (FailedRevision(TWO, "errorRate", "", NOW),)
    state = replace(STEPPING, phase=Phase.ROLLING_BACK, failed=failed)
    missing = FailureFact("NoFiles", "s: s3://models/1 has no files")
    nothing = replace(READY, together=False, candidate_loaded=False, stable_ready=False, stable_failed=missing)
    waits, action = advance(state, spec(), nothing)
    assert (waits.phase, waits.waiting, action.keep) == (Phase.ROLLING_BACK, "Unloaded", {1})
    assert waits.message == (
        "taken back (errorRate: ); no revision is loaded, and the stable revision cannot be loaded: s: s3://models/1 "
        "has no files; mend that, or declare another revision"
    )
    begins, action = advance(waits, spec(), replace(nothing, declared=THREE))
    assert (begins.phase, begins.candidate, action.keep) == (Phase.LOADING, THREE, {3})


def test_what_is_taken_back_answers_only_while_it_is_loaded() -> None:
    state = replace(STEPPING, phase=Phase.ROLLING_BACK)
    without = replace(READY, stable_ready=False)
    assert advance(state, spec(), without)[0].message == "taken back; it answers until the stable revision is loaded"
    gone, _ = advance(state, spec(), replace(without, candidate_loaded=False))
    assert gone.message == "taken back; no revision is loaded until the stable revision is loaded"

"""Requests of annotations: a retry, an undo and a promotion by hand each act once, on the rollout that they name."""

from dataclasses import replace

from tests.operator.rollout.stepping import NOW, ONE, READY, STEPPING, THREE, TWO, spec

from argosy.rollout.machine import advance
from argosy.rollout.state import Ending, FailedRevision, FailureFact, Phase, RolloutState
from argosy.rollout.verdict import Outcome, Verdict


def test_a_retry_acts_once() -> None:
    failed, _ = advance(STEPPING, spec(), replace(READY, candidate_failed=FailureFact("CrashLoop")))
    gone = replace(READY, candidate_ready=False, candidate_loaded=False, retry="two")
    held, _ = advance(failed, spec(), gone)
    assert held.phase is Phase.HELD
    again, _ = advance(held, spec(), gone)
    assert (again.phase, again.failed, again.handled) == (Phase.LOADING, (), ("retry=two",))
    broken, _ = advance(again, spec(), replace(gone, candidate_failed=FailureFact("CrashLoop")))
    assert broken.phase is Phase.ROLLING_BACK
    for _ in range(3):
        broken, action = advance(broken, spec(), gone)
    assert (broken.phase, action.wake) == (Phase.HELD, None)
    once_more, _ = advance(broken, spec(), replace(gone, retry="two@2026-01-01T12:00:00Z"))
    assert once_more.phase is Phase.LOADING


def test_an_undo_of_a_promoted_revision_serves_the_former_until_git_changes() -> None:
    state = RolloutState(Phase.PROMOTED, NOW, stable=TWO, former=ONE, number=1, observed_at=NOW)
    requested = replace(READY, undo="two", stable_ready=False)
    back, action = advance(state, spec(), requested)
    assert (back.phase, action.weights, action.keep) == (Phase.ROLLING_BACK, {1: 1_000_000, 2: 0}, {1, 2})
    assert (back.history[0].outcome, back.history[0].message.partition(",")[0]) == (
        Ending.UNDONE,
        "taken back by the annotation argosy.dev/undo",
    )
    assert "answers until the stable revision is loaded" in advance(back, spec(), requested)[0].message
    _, action = advance(back, spec(), replace(requested, stable_ready=True))
    assert action.keep == {1}
    held, action = advance(back, spec(), replace(requested, stable_ready=True, candidate_loaded=False))
    assert (held.phase, action.weights) == (Phase.HELD, {1: 1_000_000})
    assert "argosy.dev/retry: two" in held.message
    other, _ = advance(held, spec(), replace(requested, declared=THREE, candidate_ready=False))
    assert (other.phase, other.candidate, other.failed) == (Phase.LOADING, THREE, ())
    back_again, _ = advance(other, spec(), replace(requested, candidate_ready=False))
    assert (back_again.phase, back_again.candidate) == (Phase.LOADING, TWO), "the annotation acted once"


def test_an_undo_may_name_the_revision_to_go_back_to() -> None:
    state = RolloutState(Phase.PROMOTED, NOW, stable=THREE, former=TWO, number=2, observed_at=NOW)
    requested = replace(READY, declared=THREE, undo="three", undo_to=ONE, stable_ready=False)
    back, action = advance(state, spec(), requested)
    assert (back.stable, back.candidate, action.keep) == (ONE, THREE, {1, 3})
    nowhere = replace(requested, undo_to=THREE)
    assert advance(state, spec(), nowhere)[0].phase is Phase.PROMOTED


def test_an_undo_to_a_revision_that_is_absent_or_failed_is_not_followed_and_says_so() -> None:
    failed = (FailedRevision(ONE, "ErrorRate", "12 of 300 requests failed", NOW),)
    state = RolloutState(Phase.PROMOTED, NOW, stable=THREE, former=TWO, number=2, observed_at=NOW, failed=failed)
    state = replace(state, message="revision three (version 3) serves")
    unknown = replace(READY, declared=THREE, undo="three@four", undo_name="four")
    refused, _ = advance(state, spec(), unknown)
    assert (refused.phase, refused.stable) == (Phase.PROMOTED, THREE)
    assert refused.message.endswith("serves; the annotation argosy.dev/undo is not followed: there is no revision four "
                                    "to go back to")  # fmt: skip
    assert advance(refused, spec(), unknown)[0] == refused
    assert advance(refused, spec(), replace(READY, declared=THREE))[0].message == state.message
    back_to_failed = replace(READY, declared=THREE, undo="three@one", undo_name="one", undo_to=ONE)
    refused, _ = advance(state, spec(), back_to_failed)
    assert (refused.phase, refused.stable) == (Phase.PROMOTED, THREE)
    assert "revision one failed before (ErrorRate)" in refused.message
    assert "argosy.dev/retry: one" in refused.message
    stepping, _ = advance(STEPPING, spec(), replace(READY, undo="two@four", undo_name="four"))
    assert stepping.phase is Phase.STEPPING
    assert "there is no revision four" in stepping.message


def test_a_request_of_an_ended_rollout_does_not_act_on_a_later_rollout_of_the_same_revision() -> None:
    bad = Verdict(Outcome.FAILED, STEPPING.analysis, "errorRate", "1.2% of 500 requests failed")
    overdue = replace(READY, promote="two", undo="two@four", undo_name="four", retry="two")
    state, _ = advance(STEPPING, spec(), replace(overdue, verdict=bad))
    gone = replace(overdue, candidate_ready=False, candidate_loaded=False)
    for _ in range(3):
        state, _ = advance(state, spec(), gone)
    assert state.phase is Phase.HELD, "the annotation retry was set before it failed"
    state, _ = advance(state, spec(), replace(gone, retry="two@again"))
    assert state.phase is Phase.LOADING
    state, action = advance(state, spec(), replace(overdue, retry="two@again"))
    assert (state.phase, action.weights) == (Phase.STEPPING, {1: 950_000, 2: 50_000})


def test_a_record_says_by_hand_of_that_rollout_alone() -> None:
    state, _ = advance(STEPPING, spec(), replace(READY, promote="two", applied=False))
    state, _ = advance(state, spec(), replace(READY, promote="two", applied=False))
    assert state.message == "promoted by hand; servers do not divide requests as desired yet"
    state, _ = advance(state, spec(), replace(READY, promote="two"))
    assert state.history[0].message == "promoted by hand"
    back, _ = advance(state, spec(), replace(READY, promote="two", undo="two"))
    held, _ = advance(back, spec(), replace(READY, promote="two", undo="two", candidate_loaded=False))
    again, _ = advance(held, spec(), replace(READY, promote="two", undo="two", retry="two"))
    assert (again.phase, again.by_hand) == (Phase.LOADING, False)
    proven = replace(again, phase=Phase.PROMOTING)
    done, _ = advance(proven, spec(), replace(READY, promote="two", undo="two", retry="two"))
    assert (done.phase, done.history[0].message) == (Phase.PROMOTED, "")

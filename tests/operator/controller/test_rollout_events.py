"""Events of rollouts: each begins and ends with one, with its steps and what it waits for in between."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from argosy.analysis.pool_analysis import STICKY_KEY
from argosy.api.model.rollout.rollout import Rollout
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus
from argosy.controller.events.rollouts import rollout_events
from argosy.rollout.machine import advance
from argosy.rollout.state import Phase, Revision, RolloutInputs, RolloutState
from argosy.rollout.statuses import to_status
from argosy.rollout.verdict import Measurement, Outcome, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = Revision("one", 1), Revision("two", 2)
PAUSED = "paused by spec.rollout.paused or the annotation argosy.dev/pause; its clock stands still"
SPEC = Rollout.model_validate({"shadow": {"traffic": "10%"}, "steps": [{"traffic": "5%"}]})
SERVING = RolloutState(Phase.STABLE, NOW, stable=ONE, observed_at=NOW)
READY = RolloutInputs(TWO, NOW, candidate_ready=True, candidate_loaded=True)


def status(state: RolloutState) -> InferenceModelStatus:
    rollout = to_status(state).model_copy(update={"steps": 1, "desired_traffic": 50})
    return InferenceModelStatus(rollout=rollout)


def history(state: RolloutState, *rounds: RolloutInputs) -> list[tuple[str, str]]:
    """Return the Events of successive rounds, each with the message."""
    events = []
    for inputs in rounds:
        before, now = state, inputs.now
        verdict = inputs.verdict
        if verdict is not None:
            inputs = replace(inputs, verdict=replace(verdict, analysis=state.analysis))
        state, _ = advance(state, SPEC, replace(inputs, now=now))
        events += [(event.reason, event.message) for event in rollout_events(status(before), status(state))]
        assert list(rollout_events(status(state), status(state))) == []
    return events


def test_a_rollout_is_reported_from_its_start_to_its_end() -> None:
    good = Verdict(Outcome.SUCCESSFUL, "", message="0 of 500 requests failed")
    rounds = [replace(READY, now=NOW + timedelta(minutes=minute), verdict=good) for minute in range(0, 30, 2)]
    assert history(SERVING, *rounds) == [
        ("RolloutStarted", "revision two (version 2) is to replace revision one (version 1)"),
        ("RolloutShadowing", "requests are mirrored to revision two (version 2)"),
        ("RolloutStep", "step 1 of 1: revision two (version 2) gets 5% of requests"),
        ("RolloutCompleted", "revision two (version 2): Promoted: 0 of 500 requests failed"),
    ]


def test_what_is_taken_back_or_waits_is_reported_with_why() -> None:
    stepping = replace(SERVING, phase=Phase.STEPPING, candidate=TWO, number=1)
    bad = Verdict(Outcome.FAILED, "", "errorRate", "9 of 100 requests failed")
    assert history(stepping, replace(READY, paused=True), replace(READY, paused=True), replace(READY, verdict=bad)) == [
        ("RolloutPaused", "revision two (version 2): " + PAUSED),
        ("RolloutRolledBack", "revision two (version 2): RolledBack: errorRate: 9 of 100 requests failed"),
    ]
    minutes = [replace(READY, now=NOW + timedelta(minutes=minute)) for minute in range(0, 40, 2)]
    ((reason, message),) = history(stepping, *minutes)
    assert (reason, "promote it by hand, undo it, or wait" in message) == ("RolloutInconclusive", True)


def test_keys_that_most_requests_lack_are_reported_once_in_a_rollout() -> None:
    def proven(number: int, *measurements: Measurement) -> InferenceModelStatus:
        state = replace(SERVING, phase=Phase.STEPPING, candidate=TWO, number=number)
        return status(replace(state, verdict=Verdict(Outcome.INCONCLUSIVE, state.analysis, measurements=measurements)))

    missing = Measurement(STICKY_KEY, 0.9, samples=1000, message="900 of 1000 requests have no header x-user")
    present = replace(missing, value=0.1)
    (event,) = rollout_events(proven(1, present), proven(1, missing))
    assert (event.reason, event.message) == ("StickyKeyMissing", "900 of 1000 requests have no header x-user")
    assert list(rollout_events(proven(1, missing), proven(1, replace(missing, value=0.8)))) == []
    assert "StickyKeyMissing" in [one.reason for one in rollout_events(proven(1, missing), proven(2, missing))]
    assert list(rollout_events(proven(1), proven(1, present))) == []


def test_what_has_no_rollout_has_no_events_of_one() -> None:
    assert list(rollout_events(None, ServingPoolStatus())) == []
    assert list(rollout_events(EnsembleStatus(), EnsembleStatus())) == []
    ended = replace(SERVING, history=advance(replace(SERVING, phase=Phase.STEPPING, candidate=TWO), None,
        replace(READY, declared=ONE))[0].history)  # fmt: skip
    assert list(rollout_events(None, status(ended))) == [], "another process reported it"

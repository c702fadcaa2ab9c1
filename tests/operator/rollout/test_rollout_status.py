"""A state survives a restart of the operator in the status."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from argosy.api.rolloutstatus import RolloutStatus
from argosy.rollout.state import Ending, FailedRevision, Phase, Record, Revision, RolloutState
from argosy.rollout.statuses import from_status, to_status
from argosy.rollout.verdict import Measurement, Outcome, Verdict

NOW = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
TWO = Revision("two", 2)
FULL = RolloutState(
    Phase.STEPPING,
    NOW,
    stable=Revision("one", 1),
    candidate=TWO,
    former=Revision("zero", 7),
    number=3,
    step=1,
    paused_at=NOW + timedelta(seconds=3),
    paused_for=timedelta(milliseconds=1500),
    observed_at=NOW + timedelta(seconds=2),
    waiting="Paused",
    message="paused",
    verdict=Verdict(
        Outcome.INCONCLUSIVE,
        "3/two/1",
        "errorRate",
        "1 of 20 requests failed",
        (
            Measurement("errorRate", 0.05, "<= 0.001", 20, "SPRT", Outcome.INCONCLUSIVE),
            Measurement("p99", 0.2, "<= 2", 20, "", None, 0.1, "twice as long"),
        ),
    ),
    failed=(FailedRevision(Revision("bad", 4), "CrashLoop", "it exited", NOW),),
    history=(
        Record(
            Revision("bad", 4),
            Ending.ROLLED_BACK,
            "it exited",
            NOW,
            Verdict(Outcome.FAILED, "2/bad/0", "CrashLoop", ""),
        ),
    ),
    handled=("retry=two",),
)


def test_a_state_is_the_same_after_a_restart() -> None:
    for phase in Phase:
        state = replace(FULL, phase=phase, step=1 if phase in (Phase.STEPPING, Phase.PROMOTING) else 0)
        text = to_status(state).model_dump_json(by_alias=True)
        assert from_status(RolloutStatus.model_validate_json(text)) == state


def test_people_count_steps_from_one() -> None:
    assert to_status(FULL).step == 2
    assert to_status(replace(FULL, phase=Phase.LOADING, step=0)).step == 0


def test_a_status_of_another_release_is_read_where_its_words_are_those_of_this_release() -> None:
    assert from_status(None) is None
    assert from_status(RolloutStatus(phase="Teleporting")) is None
    status = to_status(FULL).model_copy(update={"since": "yesterday", "paused_at": ""})
    restored = from_status(status)
    assert restored is not None
    assert restored.since.year == 1970
    history = (*to_status(FULL).history, to_status(FULL).history[0].model_copy(update={"outcome": "Vanished"}))
    assert len(from_status(to_status(FULL).model_copy(update={"history": history})).history) == 1  # type: ignore[union-attr]


def test_a_measurement_without_a_finite_value_has_none_in_the_status() -> None:
    verdict = Verdict(Outcome.ERROR, "3/two/1", measurements=(Measurement("q", float("nan"), stable=float("inf")),))
    status = to_status(replace(FULL, verdict=verdict))
    assert status.analysis is not None
    assert (status.analysis.measurements[0].value, status.analysis.measurements[0].stable) == (None, None)

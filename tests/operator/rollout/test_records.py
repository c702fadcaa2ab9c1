"""Which records of earlier rollouts stay in a status."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from argosy.rollout.machine import advance
from argosy.rollout.records import MOST_RECORDS, NEWEST, last_word, retained
from argosy.rollout.state import Ending, Phase, Record, Revision, RolloutInputs, RolloutState
from argosy.rollout.statuses import from_status, to_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROLLED_BACK, PROMOTED, SUPERSEDED = Ending.ROLLED_BACK, Ending.PROMOTED, Ending.SUPERSEDED


def record(version: int, outcome: Ending) -> Record:
    return Record(Revision(f"r{version}", version), outcome, "", NOW + timedelta(hours=version))


def promoted(records: Sequence[Record]) -> set[str]:
    return {one.revision.name for one in records if one.outcome is PROMOTED}


def after(*endings: Ending, revision: int | None = None) -> tuple[Record, ...]:
    """Return the records after rollouts with these endings, each of another revision unless one is named."""
    records: tuple[Record, ...] = ()
    for version, ending in enumerate(endings, 1):
        records = retained((record(revision or version, ending), *records))
        assert len(records) <= MOST_RECORDS
    return records


def test_a_few_records_all_stay() -> None:
    assert [one.revision.version for one in after(*[ROLLED_BACK] * 10)] == list(range(10, 0, -1))
    assert [one.revision.version for one in after(*[ROLLED_BACK] * 12)] == list(range(12, 2, -1))


def test_pushes_in_a_row_that_fail_do_not_push_out_good_revisions() -> None:
    records = after(*[PROMOTED] * 5, *[ROLLED_BACK, SUPERSEDED] * 20)
    assert promoted(records) == {"r1", "r2", "r3", "r4", "r5"}
    assert [one.revision.version for one in records[:5]] == [45, 44, 43, 42, 41]


def test_the_newest_stay_whatever_came_of_them() -> None:
    records = after(*[PROMOTED] * 30, *[ROLLED_BACK] * 30)
    assert [one.outcome for one in records] == [ROLLED_BACK] * NEWEST + [PROMOTED] * (MOST_RECORDS - NEWEST)
    assert [one.revision.version for one in records[NEWEST:]] == list(range(30, 23, -1))


def test_a_revision_that_is_promoted_again_and_again_pushes_out_no_other_one() -> None:
    first = after(PROMOTED, PROMOTED)
    records = first
    for _ in range(30):
        records = retained((record(3, PROMOTED), *records))
    assert promoted(records) == {"r1", "r2", "r3"}


def test_the_last_word_on_a_revision_is_what_its_proof_came_to() -> None:
    records = (record(1, SUPERSEDED), record(2, ROLLED_BACK), record(1, PROMOTED), record(1, ROLLED_BACK))
    last = last_word(records, frozenset({"r1"}))
    assert last is not None
    assert last.outcome is PROMOTED
    assert last_word(records[:1], frozenset({"r1"})) == records[0]
    assert last_word(records, frozenset({"r9"})) is None


def test_the_first_revision_and_one_that_served_before_have_a_record_to_be_gone_back_to() -> None:
    one = Revision("one", 1, (("m", 3),))
    loading, _ = advance(None, None, RolloutInputs(one, NOW))
    first, _ = advance(loading, None, RolloutInputs(one, NOW, candidate_ready=True, candidate_loaded=True))
    served, _ = advance(None, None, RolloutInputs(one, NOW, serving=one))
    for state in (first, served):
        assert (state.phase, promoted(state.history)) == (Phase.STABLE, {"one"})
        restored = from_status(to_status(state))
        assert isinstance(restored, RolloutState)
        assert restored.history[0].revision.steps == (("m", 3),), "an ensemble's revision keeps its steps"

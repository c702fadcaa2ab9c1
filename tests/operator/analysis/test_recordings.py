"""From its recorded readings a verdict is reached again, whatever was read, and however long it took."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.analysis.versions import durations, executions

from argosy.analysis.pool_analysis import AnalysisSubject, MemberAnalysis, analyzed
from argosy.analysis.queries import query_key
from argosy.analysis.recordings.recording import FEWEST_READINGS, LONGEST, MOST_READINGS, Recording, recorded
from argosy.api.model.rollout.analysis import Analysis
from argosy.api.model.rollout.shadow import Shadow
from argosy.autoscaling.metrics.names import Failure
from argosy.autoscaling.metrics.shadow_counts import ShadowSignals
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.metrics.version_counts import VersionSignals
from argosy.replay.codec import converter
from argosy.rollout.state import Phase, Revision, RolloutState

NAME, IDENTITY = "m", "InferenceModel default/m"
START = datetime(2026, 1, 1, tzinfo=UTC)
ANALYSIS = Analysis.model_validate(
    {
        "warmUp": "2s",
        "latency": {"serviceTime": 1.5, "p99": 2},
        "queries": [{"name": "share", "query": "x", "successCondition": "result < 0.5"}],
    }
)


def subject(phase: Phase = Phase.STEPPING, step: int = 0, **changed: object) -> AnalysisSubject:
    state = RolloutState(phase, START, Revision("one", 1), Revision("two", 2), number=3, step=step)
    made = AnalysisSubject(NAME, state, ANALYSIS, ANALYSIS.queries, least=50)
    return replace(made, **changed)


@dataclass
class Rounds:
    """The readings of one pool: as it is analyzed, and as it is recorded."""

    analyses: dict[str, MemberAnalysis] = field(default_factory=dict)
    recordings: dict[str, Recording] = field(default_factory=dict)
    now: datetime = START

    def read(self, one: AnalysisSubject, signals: PoolSignals, seconds: float = 1.0) -> None:
        self.now += timedelta(seconds=seconds)
        before = self.analyses
        self.analyses = analyzed({IDENTITY: one}, signals, before, self.now)
        self.recordings = recorded(self.recordings, {IDENTITY: one}, before, signals, self.now)

    def replays(self) -> Iterator[MemberAnalysis]:
        """Yield the last analysis that follows from each recording, after it was a document."""
        for recording in self.recordings.values():
            text = json.dumps(converter().unstructure(recording))
            again = converter().structure(json.loads(text), Recording)
            assert again == recording
            yield list(again.judgements())[-1].analysis


@st.composite
def signals_of_a_second(draw: st.DrawFn) -> VersionSignals:
    """Return what a version counted in one second."""
    seed, requests = draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 60))
    random = np.random.default_rng(seed)
    failed = draw(st.sampled_from([0, 0, 0, 1, requests]))
    shadow = draw(
        st.sampled_from([None, ShadowSignals(outcomes={"equal": float(requests), "different": float(failed)})])
    )
    reasons = {Failure.OUT_OF_MEMORY: 1.0} if failed == 1 and requests % 7 == 0 else {}
    size = random.integers(1, 9, size=max(requests // 4, 1))
    return VersionSignals(
        1.0,
        answered=float(requests),
        errors=float(min(failed, requests)),
        failures=reasons,
        latency=durations(random.gamma(2.0, 0.02, requests)),
        executions=executions(size, random.gamma(9.0, 0.001, len(size))) if requests else {},
        routed=float(requests),
        shadow=shadow,
    ).as_reading()


READINGS = st.lists(
    st.tuples(signals_of_a_second(), signals_of_a_second(), st.sampled_from(["", "", "server a: timeout"])), max_size=25
)


@given(
    readings=READINGS,
    turning=st.lists(st.integers(0, 24), max_size=3),
    phases=st.sampled_from([(Phase.STEPPING,), (Phase.LOADING, Phase.STEPPING), (Phase.SHADOWING, Phase.STEPPING)]),
    histograms=st.booleans(),
    queried=st.sampled_from([None, 0.1, 0.9]),
)
def test_the_replayed_verdict_is_the_recorded_one(
    readings: list[tuple[VersionSignals, VersionSignals, str]],
    turning: list[int],
    phases: tuple[Phase, ...],
    histograms: bool,
    queried: float | None,
) -> None:
    rounds, least = Rounds(), 50
    for number, (stable, candidate, error) in enumerate(readings):
        phase = phases[min(len(phases) - 1, number // 8)]
        shadow = Shadow.model_validate({"traffic": "10%"}) if phase is Phase.SHADOWING else None
        least += turning.count(number)  # an edit of the spec begins another stretch
        one = subject(phase, step=number // 16, least=least, has_histograms=histograms, shadow=shadow)
        key = (NAME, query_key("share"))
        queries = {key: queried} if queried is not None else {}
        errors = {} if queries else {key: "it returns nothing"}
        versions = {NAME: {1: stable, 2: candidate, 7: candidate}}
        rounds.read(one, PoolSignals(versions=versions, queries=queries, query_errors=errors, error=error))
        assert list(rounds.replays()) == list(rounds.analyses.values())


def _equal(first: VersionSignals) -> PoolSignals:
    return PoolSignals(versions={NAME: {1: first, 2: first}})


def test_a_long_step_is_bounded_and_its_verdict_is_still_reached() -> None:
    rounds = Rounds()
    random = np.random.default_rng(1)
    for _ in range(2 * MOST_READINGS + 50):
        latency = durations(random.gamma(2.0, 0.02, 5))
        rounds.read(subject(), _equal(VersionSignals(1.0, answered=5.0, latency=latency).as_reading()))
    assert MOST_READINGS // 2 <= rounds.recordings[IDENTITY].readings <= MOST_READINGS
    (analysis,) = rounds.replays()
    assert analysis == rounds.analyses[IDENTITY]
    assert analysis.evidence.of_candidate.answered == 5 * (2 * MOST_READINGS + 50)


def test_old_readings_go_first() -> None:
    rounds = Rounds()
    for _ in range(200):
        rounds.read(subject(), _equal(VersionSignals(30.0, answered=1.0).as_reading()), seconds=30)
        rounds.read(subject(least=len(rounds.analyses)), _equal(VersionSignals()), seconds=30)
    (recording,) = rounds.recordings.values()
    assert rounds.now - recording.stretches[0].readings[-1].at <= LONGEST
    assert list(rounds.replays()) == list(rounds.analyses.values())


def test_a_step_begins_another_recording_and_rest_ends_it() -> None:
    rounds, signals = Rounds(), _equal(VersionSignals(1.0, answered=5.0).as_reading())
    for step in (0, 0, 0, 1):
        rounds.read(subject(step=step), signals)
    assert rounds.recordings[IDENTITY].readings == 1
    resting = replace(subject(), state=RolloutState(Phase.PROMOTED, START, Revision("two", 2)))
    rounds.read(resting, signals)
    assert rounds.recordings == {}


def test_many_members_share_what_a_pool_records() -> None:
    subjects = {f"InferenceModel default/{number}": subject(name=str(number)) for number in range(100)}
    made: dict[str, Recording] = {}
    for second in range(100):
        made = recorded(made, subjects, {}, PoolSignals(), START + timedelta(seconds=second))
    assert {one.readings for one in made.values()} <= set(range(FEWEST_READINGS + 1))
    assert sum(one.readings for one in made.values()) <= 100 * FEWEST_READINGS

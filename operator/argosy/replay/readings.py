"""The readings of a bundle judged again: the verdict that they become, and at which reading each measurement turned."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from argosy.analysis.pool_analysis import AnalysisSubject
from argosy.analysis.recordings.recording import Judgement, Recording
from argosy.planning.rollouts.memory import CandidateEvidence
from argosy.replay.codec import encoded
from argosy.replay.differences import Difference, differences
from argosy.replay.secrets import without_secrets
from argosy.rollout.verdict import Measurement, Outcome, Verdict
from argosy.snapshot import FleetSnapshot

VERDICT = "verdict"
"""What stands in the place of a measurement's name where the whole verdict turns."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A reading, counted from 1, at which the outcome of a measurement changed; None before there was one.
    `measurement`: what it was then; None for the verdict as a whole.
    """

    reading: int
    at: datetime
    name: str
    before: Outcome | None
    after: Outcome | None
    measurement: Measurement | None = None


@dataclass(frozen=True, slots=True)
class CandidateReplay:
    """The readings of one candidate, each with its judgement. `member`: its resource's kind and name."""

    member: str
    subject: AnalysisSubject
    judgements: Sequence[Judgement]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the last reading, whether or not it was reported yet."""
        return self.judgements[-1].verdict

    @property
    def names(self) -> list[str]:
        """The measurements that there are, in their order."""
        every = (measurement.name for judgement in self.judgements for measurement in judgement.verdict.measurements)
        return list(dict.fromkeys(every))

    def of(self, name: str) -> list[Measurement | None]:
        """Return one measurement at each reading; None where it was not taken."""
        return [_named(judgement.verdict, name) for judgement in self.judgements]

    @property
    def turns(self) -> Iterator[Turn]:
        """The readings at which outcomes changed, in the order of time."""
        outcomes: dict[str, Outcome | None] = {}
        for number, judgement in enumerate(self.judgements, 1):
            verdict = judgement.verdict
            for one in verdict.measurements:
                if one.outcome is not outcomes.get(one.name):
                    yield Turn(number, judgement.reading.at, one.name, outcomes.get(one.name), one.outcome, one)
                    outcomes[one.name] = one.outcome
            if verdict.outcome is not outcomes.get(VERDICT):
                yield Turn(number, judgement.reading.at, VERDICT, outcomes.get(VERDICT), verdict.outcome)
                outcomes[VERDICT] = verdict.outcome


def candidate_replays(recordings: Mapping[str, Recording]) -> tuple[CandidateReplay, ...]:
    """Return the recordings of a bundle, judged by this release."""
    every = ((name, recording, tuple(recording.judgements())) for name, recording in recordings.items())
    return tuple(
        CandidateReplay(name, recording.stretches[-1].subject, judgements)
        for name, recording, judgements in every
        if judgements
    )


def evidence_differences(snapshot: FleetSnapshot, replays: Sequence[CandidateReplay]) -> Iterator[Difference]:
    """Yield in what the evidence that a round acted upon is not what its readings become."""
    for replay in replays:
        analysis = replay.judgements[-1].analysis
        again = CandidateEvidence(analysis.verdict, analysis.requests, analysis.traffic)
        before = snapshot.evidence.get(replay.member, CandidateEvidence())
        yield from differences(encoded(before), without_secrets(encoded(again)).document, f"evidence.{replay.member}")


def _named(verdict: Verdict, name: str) -> Measurement | None:
    return next((measurement for measurement in verdict.measurements if measurement.name == name), None)

"""The readings of one member, as they became the verdict on its candidate.

A recording is about one analysis, the present step's. It is bounded in size and in age: what is older is the evidence
that its first stretch begins with.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from argosy.analysis.pool_analysis import AnalysisSubject, MemberAnalysis, begun, judged
from argosy.analysis.recordings.reading import Reading
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.rollout.verdict import Verdict

MOST_READINGS = 600
"""Of one member. A reading of two versions takes about 10 KiB of memory, and half a KiB in a compressed bundle."""
MOST_OF_POOL = 3000
"""Of all members of a pool that prove a candidate at a time; each has at least `FEWEST_READINGS`."""
FEWEST_READINGS = 40
LONGEST = timedelta(hours=1)
_MOST_STRETCHES = 20


@dataclass(frozen=True, slots=True)
class Stretch:
    """Readings in a row of one subject, and its analysis before the first of them."""

    subject: AnalysisSubject
    before: MemberAnalysis
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What followed from a reading: the analysis, as it was reported, and the verdict then."""

    reading: Reading
    analysis: MemberAnalysis
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Recording:
    """The readings of one analysis, in stretches: a new one begins where the subject changes, or the last is long."""

    stretches: tuple[Stretch, ...] = ()

    def add(
        self, subject: AnalysisSubject, before: MemberAnalysis, reading: Reading, most: int = MOST_READINGS
    ) -> "Recording":
        """Return the recording with one more reading of a subject, whose analysis was `before`. At most `most` readings
        stay, in whole stretches.
        """
        analyzed = _essence(subject)
        past = [one for one in self.stretches if one.subject.state.analysis == analyzed.state.analysis]
        if past and past[-1].subject == analyzed and len(past[-1].readings) < most // 2:
            last = past.pop()
        else:
            last = Stretch(analyzed, before)
        every = [*past, replace(last, readings=(*last.readings, reading))]
        while len(every) > 1 and _is_too_much(every, most, reading.at):
            del every[0]
        return Recording(tuple(every))

    @property
    def readings(self) -> int:
        """How many readings it has."""
        return sum(len(stretch.readings) for stretch in self.stretches)

    def judgements(self) -> Iterator[Judgement]:
        """Yield what follows from each reading, by the analysis of this release."""
        for number, stretch in enumerate(self.stretches):
            if not number:
                analysis = stretch.before
            for reading in stretch.readings:
                analysis, latest = judged(stretch.subject, reading.signals(stretch.subject.name), analysis, reading.at)
                if latest is not None:
                    yield Judgement(reading, analysis, latest)


def _is_too_much(stretches: list[Stretch], most: int, now: datetime) -> bool:
    count = sum(len(stretch.readings) for stretch in stretches)
    is_old = now - stretches[0].readings[-1].at > LONGEST
    return count > most or len(stretches) > _MOST_STRETCHES or is_old


def _essence(subject: AnalysisSubject) -> AnalysisSubject:
    """Return a subject with what the analysis reads of its state, which is the same in all readings of a step."""
    state = subject.state
    bare = type(state)(state.phase, state.since, state.stable, state.candidate, number=state.number, step=state.step)
    return replace(subject, state=bare)


def recorded(
    before: Mapping[str, Recording],
    subjects: Mapping[str, AnalysisSubject],
    analyses: Mapping[str, MemberAnalysis],
    signals: PoolSignals,
    now: datetime,
) -> dict[str, Recording]:
    """Return the recordings of a pool after a reading, by identity: of each subject that proves a candidate. `analyses`
    are those before the reading.
    """
    proven = {name: subject for name, subject in subjects.items() if subject.state.analysis}
    most = max(FEWEST_READINGS, min(MOST_READINGS, MOST_OF_POOL // max(len(proven), 1)))
    return {
        name: before.get(name, Recording()).add(
            subject, analyses.get(name) or begun(subject.state), Reading.of(subject, signals, now), most
        )
        for name, subject in proven.items()
    }

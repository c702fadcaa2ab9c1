"""The evidence that a bundle's readings become, for people: what turned when, and a line of each measurement."""

from collections.abc import Iterator, Sequence

from argosy.analysis.recordings.recording import Judgement
from argosy.cli.evidence import LEGEND, letter
from argosy.local.printing import NONE, aligned
from argosy.replay.readings import VERDICT, CandidateReplay, Turn
from argosy.rollout.verdict import Measurement, Outcome
from argosy_common.wording import shortened

_TURNS = ("READING", "AFTER", "MEASUREMENT", "OUTCOME", "CANDIDATE", "STABLE", "PROGRESS")
_WIDTH, _LONGEST_NAME = 56, 16


def evidence_lines(replay: CandidateReplay) -> Iterator[str]:
    """Yield the report on one candidate, in 80 columns."""
    state = replay.subject.state
    versions = [revision.version if revision is not None else None for revision in (state.candidate, state.stable)]
    first, last = replay.judgements[0].reading.at, replay.judgements[-1].reading.at
    yield f"{replay.member}: version {versions[0]} next to version {versions[1]}, {state.phase} {state.analysis}"
    yield f"{len(replay.judgements)} readings from {first:%H:%M:%S} to {last:%H:%M:%S}; the measurements turned at:"
    yield ""
    yield from aligned([_TURNS, *(_row(replay, turn) for turn in replay.turns)])
    yield ""
    yield from _timelines(replay)
    yield ""
    verdict = replay.verdict
    message = f": {verdict.message}" if verdict.message else ""
    yield f"Verdict: {verdict.outcome}{f' ({verdict.reason})' if verdict.reason else ''}{message}"


def _row(replay: CandidateReplay, turn: Turn) -> Sequence[str]:
    one = turn.measurement
    seconds = (turn.at - replay.judgements[0].reading.at).total_seconds()
    return (
        str(turn.reading),
        f"{seconds:.1f} s",
        shortened(turn.name, _LONGEST_NAME),
        turn.after or NONE,
        *(_number(value) for value in (_values(one) if one is not None else (None, None, None))),
    )


def _values(one: Measurement) -> tuple[float | None, ...]:
    return one.value, one.stable, one.progress


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.3g}"


def _timelines(replay: CandidateReplay) -> Iterator[str]:
    """Yield a line for each measurement, from the first reading to the last, and what its letters mean."""
    count = len(replay.judgements)
    width = min(count, _WIDTH)
    indices = [(column + 1) * count // width - 1 for column in range(width)]
    longest = max(len(shortened(name, _LONGEST_NAME)) for name in (*replay.names, VERDICT))
    for name in replay.names:
        every = replay.of(name)
        letters = (
            letter(one.outcome, one.progress) if one is not None else " " for one in map(every.__getitem__, indices)
        )
        yield f"{shortened(name, _LONGEST_NAME).ljust(longest)} |{''.join(letters)}|"
    outcomes = (_outcome(replay.judgements[index]) for index in indices)
    yield f"{VERDICT.ljust(longest)} |{''.join(letter(outcome, None) for outcome in outcomes)}|"
    yield LEGEND


def _outcome(judgement: Judgement) -> Outcome:
    return judgement.verdict.outcome

"""A rollout in detail, and its history, as tables."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from argosy.api.rolloutstatus import AnalysisStatus, MeasurementStatus, RolloutStatus
from argosy.api.values.times import parse_time
from argosy.cli.rollout.member import Member
from argosy.cli.rollout.progress import described, progress, traffic
from argosy.local.printing import NONE, age, aligned

_MEASUREMENTS = ("MEASUREMENT", "CANDIDATE", "STABLE", "LIMIT", "SAMPLES", "OUTCOME", "TEST")
_HELD = ("HELD", "VERSION", "REASON", "AGE", "MESSAGE")
_HISTORY = ("REVISION", "VERSION", "OUTCOME", "AGE", "MESSAGE")


def description(member: Member, now: datetime) -> Iterator[str]:
    """Yield the lines that describe a member's rollout. `now` has a time zone."""
    rollout = member.rollout
    if rollout is None:
        yield from aligned([(f"{member.kind}:", f"{member.namespace}/{member.name}"), ("Rollout:", _none(member))])
        return
    yield from aligned([(f"{name}:", value) for name, value in _fields(member, rollout, now) if value])
    if rollout.analysis is not None and rollout.analysis.measurements:
        yield ""
        yield from aligned([_MEASUREMENTS, *(_measurement(one) for one in rollout.analysis.measurements)])
    if rollout.held:
        yield ""
        rows = (
            (held.revision, str(held.version), held.reason or NONE, _age(held.time, now), held.message)
            for held in rollout.held
        )
        yield from aligned([_HELD, *rows])


def history(rollout: RolloutStatus | None, now: datetime) -> Iterator[str]:
    """Yield the lines of what came of the last rollouts, the newest first."""
    records = rollout.history if rollout is not None else ()
    rows = (
        (record.revision, str(record.version), record.outcome, _age(record.time, now), record.message)
        for record in records
    )
    yield from aligned([_HISTORY, *rows])


def _fields(member: Member, rollout: RolloutStatus, now: datetime) -> Sequence[tuple[str, str]]:
    step = f", step {rollout.step} of {rollout.steps}" if rollout.step and rollout.steps else ""
    since = f" for {_age(rollout.since, now)}" if rollout.since else ""
    strategy = f"{rollout.strategy}: {rollout.strategy_message}" if rollout.strategy_message else rollout.strategy
    return (
        (member.kind, f"{member.namespace}/{member.name}"),
        ("Phase", f"{rollout.phase}{step}{since}"),
        ("Stable", described(rollout.stable)),
        ("Candidate", described(rollout.candidate)),
        ("Former", described(rollout.former)),
        ("Traffic", traffic(rollout)),
        ("Strategy", strategy),
        ("Waiting", rollout.waiting),
        ("Message", rollout.message or progress(member).message),
        ("Analysis", _analysis(rollout.analysis)),
    )


def _none(member: Member) -> str:
    state = progress(member).message
    return state if member.proves else f"nothing is proven, for lack of spec.rollout.steps and shadow; {state}"


def _analysis(analysis: AnalysisStatus | None) -> str:
    if analysis is None:
        return ""
    reason = f" ({analysis.reason})" if analysis.reason else ""
    return f"{analysis.outcome}{reason}: {analysis.message}" if analysis.message else f"{analysis.outcome}{reason}"


def _measurement(one: MeasurementStatus) -> Sequence[str]:
    return (
        one.name,
        _number(one.value),
        _number(one.stable),
        one.limit or NONE,
        str(one.samples),
        one.outcome or NONE,
        one.test or NONE,
    )


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.4g}"


def _age(time: str, now: datetime) -> str:
    at = parse_time(time)
    return age(now - at) if at is not None else NONE

"""A rollout in detail, and its history, as tables of at most 80 columns, and as a document."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from textwrap import wrap
from typing import Any

from argosy.api.model.rollout.steps import PAUSE_MS
from argosy.api.rolloutstatus import (
    AnalysisStatus,
    MeasurementStatus,
    RolloutRecord,
    RolloutStatus,
    ShadowOutputStatus,
    ShadowStatus,
)
from argosy.api.values.quantity import format_duration, parse_duration
from argosy.api.values.times import parse_time
from argosy.cli.evidence import bar
from argosy.cli.rollout.member import Member
from argosy.cli.rollout.progress import described, progress, traffic
from argosy.local.printing import NONE, age, aligned
from argosy.rollout.state import Ending, Phase
from argosy.rollout.verdict import Outcome
from argosy_common.wording import shortened

_COLUMNS, _LEAST, _LONGEST_NAME, _HALF = 80, 24, 16, 6
_MEASUREMENTS = ("MEASUREMENT", "PASSES".ljust(_HALF + 3) + "FAILS ", "CANDIDATE", "STABLE", "SAMPLES", "OUTCOME")
_OUTPUTS = ("OUTPUT", "DIFFERENT", "LARGEST DIFFERENCE", "ROWS ALIKE", "WORST REQUESTS")
_COUNTS = ("equal", "different", "failed", "uncompared", "skipped", "canceled")
_PAUSE = format_duration(PAUSE_MS)
_HELD = ("HELD", "VERSION", "REASON", "AGE", "MESSAGE")
_HISTORY = ("REVISION", "VERSION", "OUTCOME", "AGE", "MESSAGE")


def description(member: Member, now: datetime) -> Iterator[str]:
    """Yield the lines that describe a member's rollout. `now` has a time zone."""
    rollout = member.rollout
    if rollout is None:
        yield from wrapped([(f"{member.kind}:", f"{member.namespace}/{member.name}"), ("Rollout:", _none(member))])
        return
    yield from wrapped([(f"{name}:", value) for name, value in _fields(member, rollout, now) if value])
    yield from evidence(_shown(rollout))
    if rollout.shadow is not None and rollout.shadow.outputs:
        yield ""
        yield from aligned([_OUTPUTS, *(_output(one) for one in rollout.shadow.outputs)])
    if rollout.held:
        yield ""
        rows = (
            (held.revision, str(held.version), held.reason or NONE, _age(held.time, now), held.message)
            for held in rollout.held
        )
        yield from wrapped([_HELD, *rows])


def description_document(member: Member) -> dict[str, Any]:
    """Return the same as plain JSON values: how far it is, and the status of its rollout; null where there is none."""
    state, rollout = progress(member), member.rollout
    return {
        "kind": member.kind,
        "namespace": member.namespace,
        "name": member.name,
        "message": state.message,
        "finished": state.finished,
        "failed": state.failed,
        "rollout": rollout.model_dump(mode="json", by_alias=True, exclude_unset=True) if rollout is not None else None,
    }


def wrapped(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows of equal length as lines of columns, of which the last is wrapped."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    indent = sum(width + 2 for width in widths)
    for *head, last in rows:
        first = "".join(text.ljust(width + 2) for text, width in zip(head, widths, strict=True))
        lines = wrap(last, max(_COLUMNS - indent, _LEAST), break_long_words=False, break_on_hyphens=False)
        yield (first + (lines[0] if lines else "")).rstrip()
        yield from (" " * indent + line for line in lines[1:])


def evidence(analysis: AnalysisStatus | None) -> Iterator[str]:
    """Yield the table of the measurements that a verdict is based on, after an empty line; nothing without any."""
    if analysis is None or not analysis.measurements:
        return
    yield ""
    yield from aligned([_MEASUREMENTS, *(_measurement(one) for one in analysis.measurements)])
    yield ""
    limits = ((one.name, "; ".join(filter(None, (one.limit, one.test)))) for one in analysis.measurements)
    yield from wrapped([("LIMIT OF", ""), *((name, limit or NONE) for name, limit in limits)])


def record(one: RolloutRecord, now: datetime) -> Iterator[str]:
    """Yield the lines about one earlier rollout, with its evidence."""
    analysis = _decisive(one.analysis) if one.outcome == Ending.ROLLED_BACK else one.analysis
    fields = (
        ("Revision", f"{one.revision} (version {one.version})"),
        ("Outcome", f"{one.outcome} {_age(one.time, now)} ago"),
        ("Message", one.message),
        ("Analysis", _analysis(analysis)),
    )
    yield from wrapped([(f"{name}:", value) for name, value in fields if value])
    yield from evidence(analysis)


def history(rollout: RolloutStatus | None, now: datetime) -> Iterator[str]:
    """Yield the lines of what came of the last rollouts, the newest first."""
    records = rollout.history if rollout is not None else ()
    rows = (
        (record.revision, str(record.version), record.outcome, _age(record.time, now), record.message)
        for record in records
    )
    yield from wrapped([_HISTORY, *rows])


def _fields(member: Member, rollout: RolloutStatus, now: datetime) -> Sequence[tuple[str, str]]:
    step = f", step {rollout.step} of {rollout.steps}" if rollout.step and rollout.steps else ""
    since = f" for {_age(rollout.since, now)}{_least(member, rollout)}" if rollout.since else ""
    strategy = f"{rollout.strategy}: {rollout.strategy_message}" if rollout.strategy_message else rollout.strategy
    return (
        (member.kind, f"{member.namespace}/{member.name}"),
        ("Phase", f"{rollout.phase}{step}{since}"),
        ("Stable", described(rollout.stable)),
        ("Candidate", described(rollout.candidate)),
        ("Former", _former(member, rollout)),
        ("Traffic", traffic(rollout)),
        ("Strategy", strategy),
        ("Waiting", rollout.waiting),
        ("Message", rollout.message or progress(member).message),
        ("Shadow", _shadow(rollout.shadow)),
        ("Analysis", _analysis(_shown(rollout), but_for=rollout.message)),
    )


def _shown(rollout: RolloutStatus) -> AnalysisStatus | None:
    """Return the analysis of the last candidate; none of a revision that was the first one, and needed no proof, or
    was taken back before anything was measured.
    """
    if rollout.phase == Phase.STABLE:
        return None
    return _decisive(rollout.analysis) if rollout.phase in (Phase.ROLLING_BACK, Phase.HELD) else rollout.analysis


def _decisive(analysis: AnalysisStatus | None) -> AnalysisStatus | None:
    """Return an analysis that has convicted the candidate, or has samples of it."""
    if analysis is None or analysis.outcome == Outcome.FAILED or any(one.samples for one in analysis.measurements):
        return analysis
    return None


def _former(member: Member, rollout: RolloutStatus) -> str:
    """Return the former revision, and whether it is loaded as far as the status has it."""
    if rollout.former is None or member.loaded is None or rollout.former.version in member.loaded:
        return described(rollout.former)
    return f"{described(rollout.former)}, not loaded"


def _least(member: Member, rollout: RolloutStatus) -> str:
    """Return the least duration of the present step; empty where the spec does not state it as its status counts."""
    steps: Sequence[Mapping[str, Any]] = (member.spec.get("rollout") or {}).get("steps") or ()
    if rollout.phase != Phase.STEPPING or not rollout.step or len(steps) != rollout.steps:
        return ""
    return f" of at least {format_duration(parse_duration(steps[rollout.step - 1].get('pause') or _PAUSE))}"


def _shadow(shadow: ShadowStatus | None) -> str:
    """Return what became of mirrored requests, in one line."""
    if shadow is None:
        return ""
    counts = {name: getattr(shadow, name) for name in _COUNTS}
    parts = [f"{count} {name}" for name, count in counts.items() if count or name in ("equal", "different")]
    one, other = shadow.candidate_latency, shadow.stable_latency
    if one is not None and other is not None and one.p99 is not None and other.p99 is not None:
        parts.append(f"p99 {one.p99:.3g} s, {other.p99:.3g} s of the stable revision")
    return ", ".join(parts)


def _output(one: ShadowOutputStatus) -> Sequence[str]:
    worst = (f"{example.request_id} ({example.kind} {example.size:.4g})" for example in one.examples)
    agreeing = f"{one.agreeing_rows} of {one.rows}" if one.rows else NONE
    return one.output, str(one.different), _number(one.largest_difference), agreeing, ", ".join(worst) or NONE


def _none(member: Member) -> str:
    state = progress(member).message
    return state if member.proves else f"nothing is proven, for lack of spec.rollout.steps and shadow; {state}"


def _analysis(analysis: AnalysisStatus | None, but_for: str = "") -> str:
    """Return a verdict in one line, without its message where `but_for` has that already."""
    if analysis is None:
        return ""
    reason = f" ({analysis.reason})" if analysis.reason else ""
    return (
        f"{analysis.outcome}{reason}: {analysis.message}"
        if analysis.message not in but_for
        else f"{analysis.outcome}{reason}"
    )


def _measurement(one: MeasurementStatus) -> Sequence[str]:
    return (
        shortened(one.name, _LONGEST_NAME),
        bar(one.progress, _HALF),
        _number(one.value),
        _number(one.stable),
        str(one.samples),
        one.outcome or NONE,
    )


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.4g}"


def _age(time: str, now: datetime) -> str:
    at = parse_time(time)
    return age(now - at) if at is not None else NONE

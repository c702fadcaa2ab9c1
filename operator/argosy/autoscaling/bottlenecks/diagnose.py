"""The bottleneck that a member's status reports. It does not come and go with every measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from .rules import Bottleneck, Key, findings
from .subjects import Subject

APPEARS_AFTER = timedelta(seconds=10)
"""How long a rule has to hold before its bottleneck is reported."""
GOES_AFTER = timedelta(seconds=30)
"""How long its rule has to be broken before a reported bottleneck is dropped."""
REPORTED_AGAIN_AFTER = timedelta(minutes=5)
"""How often the numbers of a report are updated if they changed: a status is not written for every measurement."""
FRESH = timedelta(minutes=1)
"""How old measurements may be. Older ones change nothing."""


@dataclass(frozen=True, slots=True)
class BottleneckReport:
    """A bottleneck, since when it is there, and when its numbers were measured."""

    bottleneck: Bottleneck
    since: datetime
    measured_at: datetime


@dataclass(frozen=True, slots=True)
class BottleneckState:
    """State of one member. `report`: the bottleneck in its status. `present_since`: since when the rules of all
    bottlenecks hold; `last_present`: when that of the reported one last held.
    """

    report: BottleneckReport | None = None
    present_since: Mapping[Key, datetime] = field(default_factory=dict)
    last_present: datetime | None = None


def diagnose(subject: Subject | None, state: BottleneckState, now: datetime) -> BottleneckState:
    """Return the next state of a member; `subject` is None if it was not measured.

    A reported bottleneck stays while its rule holds and no graver one has held for long enough.
    """
    if subject is None or now - subject.signals.at > FRESH:
        return state
    reported_key = state.report.bottleneck.key if state.report else None
    bottlenecks = findings(subject, reported_key)
    since = {candidate.key: state.present_since.get(candidate.key, now) for candidate in bottlenecks}
    state = replace(state, present_since=since)
    if reported_key is not None:
        still = next((candidate for candidate in bottlenecks if candidate.key == reported_key), None)
        state = _go_on(state, still, subject.signals.at, now)
    return _displaced(state, bottlenecks, subject.signals.at, now)


def _go_on(state: BottleneckState, still: Bottleneck | None, measured_at: datetime, now: datetime) -> BottleneckState:
    """Keep the report while the rule of its bottleneck holds, and for GOES_AFTER after that."""
    assert state.report is not None
    if still is None:
        gone = state.last_present is None or now - state.last_present >= GOES_AFTER
        return replace(state, report=None, last_present=None) if gone else state
    report = state.report
    if still != report.bottleneck and now - report.measured_at >= REPORTED_AGAIN_AFTER:
        report = BottleneckReport(still, report.since, measured_at)
    return replace(state, report=report, last_present=now)


def _displaced(
    state: BottleneckState, bottlenecks: tuple[Bottleneck, ...], measured_at: datetime, now: datetime
) -> BottleneckState:
    """Report the gravest bottleneck whose rule has held for long enough, if it is graver than the reported one."""
    for candidate in bottlenecks:
        if state.report is not None and candidate.kind is state.report.bottleneck.kind:
            return state  # the same rule: its report keeps its stage
        if now - state.present_since[candidate.key] >= APPEARS_AFTER:
            report = BottleneckReport(candidate, state.present_since[candidate.key], measured_at)
            return replace(state, report=report, last_present=now)
    return state

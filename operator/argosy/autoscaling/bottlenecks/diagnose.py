"""What is told of a member: found by the rules, and settled, so that it does not come and go with every measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from .rules import Bottleneck, Key, findings
from .subjects import Subject

APPEARS_AFTER = timedelta(seconds=10)
"""How long something has to be found before it is told."""
GOES_AFTER = timedelta(seconds=30)
"""How long it must not be found any more before it is told no longer."""
REPORTED_AGAIN_AFTER = timedelta(minutes=5)
"""After how long its numbers are told again, where they changed: a status is not written for every measurement."""
FRESH = timedelta(minutes=1)
"""How old measurements may be. On older ones nothing is found, and nothing is taken back."""


@dataclass(frozen=True, slots=True)
class BottleneckReport:
    """What holds requests up, since when, and when its numbers were measured."""

    bottleneck: Bottleneck
    since: datetime
    measured_at: datetime


@dataclass(frozen=True, slots=True)
class Memory:
    """What has to be known of one member. `report`: what its status says. `present_since`: what else the rules
    find, and since when; `last_present`: when they last found what is reported.
    """

    report: BottleneckReport | None = None
    present_since: Mapping[Key, datetime] = field(default_factory=dict)
    last_present: datetime | None = None


def diagnose(subject: Subject | None, memory: Memory, now: datetime) -> Memory:
    """Return what is told of a member now; `subject` is None where nothing was measured of it.

    What was told stays so while its rule holds, or a graver one has not held for long enough.
    """
    if subject is None or now - subject.signals.at > FRESH:
        return memory
    reported_key = memory.report.bottleneck.key if memory.report else None
    bottlenecks = findings(subject, reported_key)
    since = {candidate.key: memory.present_since.get(candidate.key, now) for candidate in bottlenecks}
    memory = replace(memory, present_since=since)
    if reported_key is not None:
        still = next((candidate for candidate in bottlenecks if candidate.key == reported_key), None)
        memory = _go_on(memory, still, subject.signals.at, now)
    return _displaced(memory, bottlenecks, subject.signals.at, now)


def _go_on(memory: Memory, still: Bottleneck | None, measured_at: datetime, now: datetime) -> Memory:
    """Return the report of a bottleneck, while it is found, and a while after."""
    assert memory.report is not None
    if still is None:
        gone = memory.last_present is None or now - memory.last_present >= GOES_AFTER
        return replace(memory, report=None, last_present=None) if gone else memory
    report = memory.report
    if still != report.bottleneck and now - report.measured_at >= REPORTED_AGAIN_AFTER:
        report = BottleneckReport(still, report.since, measured_at)
    return replace(memory, report=report, last_present=now)


def _displaced(memory: Memory, bottlenecks: tuple[Bottleneck, ...], measured_at: datetime, now: datetime) -> Memory:
    """Told is the gravest that was found for long enough, if what is told is not as grave."""
    for candidate in bottlenecks:
        if memory.report is not None and candidate.kind is memory.report.bottleneck.kind:
            return memory  # the same rule: of its stages it keeps to the one that is told
        if now - memory.present_since[candidate.key] >= APPEARS_AFTER:
            report = BottleneckReport(candidate, memory.present_since[candidate.key], measured_at)
            return replace(memory, report=report, last_present=now)
    return memory

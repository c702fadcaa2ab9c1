"""What is told of a member: found by the rules, and settled, so that it does not come and go with every measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from .bottleneck import Bottleneck, Key
from .rules import findings
from .subject import Subject

APPEARS_AFTER = timedelta(seconds=10)
"""How long something has to be found before it is told."""
GOES_AFTER = timedelta(seconds=30)
"""How long it must not be found any more before it is told no longer."""
TOLD_AGAIN_AFTER = timedelta(minutes=5)
"""After how long its numbers are told anew, where they changed: a status is not written for every measurement."""
FRESH = timedelta(minutes=1)
"""How old measurements may be. On older ones nothing is found, and nothing is taken back."""


@dataclass(frozen=True, slots=True)
class Told:
    """What holds requests up, since when, and when its numbers were measured."""

    bottleneck: Bottleneck
    since: datetime
    measured_at: datetime


@dataclass(frozen=True, slots=True)
class Memory:
    """What has to be remembered of one member. `told`: what its status says. `found_since`: what else the rules find,
    and since when; `last_found`: when they last found what is told.
    """

    told: Told | None = None
    found_since: Mapping[Key, datetime] = field(default_factory=dict)
    last_found: datetime | None = None


def diagnose(subject: Subject | None, memory: Memory, now: datetime) -> Memory:
    """Return what is told of a member now; `subject` is None where nothing was measured of it.

    What was told stays so while its rule holds, or a graver one has not held for long enough.
    """
    if subject is None or now - subject.signals.at > FRESH:
        return memory
    held = memory.told.bottleneck.key if memory.told else None
    found = findings(subject, held)
    since = {each.key: memory.found_since.get(each.key, now) for each in found}
    memory = replace(memory, found_since=since)
    if held is not None:
        still = next((each for each in found if each.key == held), None)
        memory = _go_on(memory, still, subject.signals.at, now)
    return _displaced(memory, found, subject.signals.at, now)


def _go_on(memory: Memory, still: Bottleneck | None, measured_at: datetime, now: datetime) -> Memory:
    """Return the report of a bottleneck, while it is found, and a while after."""
    assert memory.told is not None
    if still is None:
        gone = memory.last_found is None or now - memory.last_found >= GOES_AFTER
        return replace(memory, told=None, last_found=None) if gone else memory
    told = memory.told
    if still != told.bottleneck and now - told.measured_at >= TOLD_AGAIN_AFTER:
        told = Told(still, told.since, measured_at)
    return replace(memory, told=told, last_found=now)


def _displaced(memory: Memory, found: tuple[Bottleneck, ...], measured_at: datetime, now: datetime) -> Memory:
    """Told is the gravest that was found for long enough, if what is told is not as grave."""
    for each in found:
        if memory.told is not None and each.kind is memory.told.bottleneck.kind:
            return memory  # the same rule: of its stages it keeps to the one that is told
        if now - memory.found_since[each.key] >= APPEARS_AFTER:
            told = Told(each, memory.found_since[each.key], measured_at)
            return replace(memory, told=told, last_found=now)
    return memory

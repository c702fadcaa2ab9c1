"""How a pool's decisions are told: with what could not be had of what they follow, and anew only where that matters."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec import structs

from argosy.api.conditions import Reason
from argosy.autoscaling.decision import Decision
from argosy.autoscaling.words import joined

TOLD_AGAIN_AFTER = timedelta(minutes=1)
"""After how long numbers are told anew where nothing else changed."""
_NOTEWORTHY = 0.1
"""The share by which what was measured must have changed for that."""
_DIGITS = re.compile(r"\d+")
"""Numbers, which are others each time."""


@dataclass(frozen=True, slots=True)
class Told:
    """A decision as it was told last, and when."""

    decision: Decision
    at: datetime


def told(before: Told | None, decision: Decision, now: datetime) -> Told:
    """Return the decision as it was told, where it is the same but for its numbers of the moment."""
    if before is None or _key(before.decision) != _key(decision):
        return Told(decision, now)
    again = now - before.at >= TOLD_AGAIN_AFTER and _differs(before.decision, decision)
    return Told(decision, now) if again else before


def beside(decision: Decision, troubles: Iterable[str]) -> Decision:
    """Return the decision, whose sentence also tells these."""
    message = joined(decision.message, *troubles)
    return decision if message == decision.message else structs.replace(decision, message=message)


def _key(decision: Decision) -> tuple[object, ...]:
    becomes, what_keeps = decision.message.partition(":")[0], _DIGITS.sub("", _what_keeps(decision))
    lowered, ejected = decision.lowering is not None, (frozenset(decision.ejection.servers), decision.ejection.keep)
    return decision.allocation, decision.reason, decision.scaled, becomes, what_keeps, lowered, ejected


def _what_keeps(decision: Decision) -> str:
    """What keeps it from what it should be, as long as nothing is known or there is no room."""
    words = {Reason.NO_SIGNALS: decision.message, Reason.LIMITED_BY_CAPACITY: decision.limited_by}
    return words.get(decision.reason, "")


def _differs(before: Decision, now: Decision) -> bool:
    same = ("desired", "metric", "limited_by", "learnt")
    if any(getattr(before, each) != getattr(now, each) for each in same):
        return True
    one, other = before.observed, now.observed
    if one is None or other is None:
        return before.message != now.message
    return abs(one - other) > _NOTEWORTHY * max(abs(one), abs(other))

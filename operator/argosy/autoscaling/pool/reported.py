"""How decisions are reported: again only where what changed matters to a reader."""

import re
from dataclasses import dataclass
from datetime import datetime

from argosy.api.conditions import Reason
from argosy.autoscaling.decision import Decision
from argosy.autoscaling.settings import SAME, STALE_S

_DIGITS = re.compile(r"\d+")
"""Numbers, which are others each time."""


@dataclass(frozen=True, slots=True)
class Report:
    """A decision as it was reported last, and when."""

    decision: Decision
    at: datetime


def reported(before: Report | None, decision: Decision, now: datetime) -> Report:
    """Return the decision as it was reported, where it is the same but for its numbers of the moment: these are
    reported again once they differ by more than noise, and not more often than each minute.
    """
    if before is None or _key(before.decision) != _key(decision):
        return Report(decision, now)
    due = (now - before.at).total_seconds() >= STALE_S
    return Report(decision, now) if due and _differs(before.decision, decision) else before


def _key(decision: Decision) -> tuple[object, ...]:
    becomes, cause = decision.message.partition(":")[0], _DIGITS.sub("", _cause(decision))
    lowered, ejected = decision.lowering is not None, (frozenset(decision.ejection.servers), decision.ejection.keep)
    return decision.allocation, decision.reason, decision.change, becomes, cause, lowered, ejected


def _cause(decision: Decision) -> str:
    """Return what keeps it from what it should be, as long as nothing is known or there is no room."""
    words = {Reason.NO_SIGNALS: decision.message, Reason.LIMITED_BY_CAPACITY: decision.limited_by}
    return words.get(decision.reason, "")


def _differs(before: Decision, now: Decision) -> bool:
    if any(getattr(before, name) != getattr(now, name) for name in ("desired", "metric", "limited_by", "estimate")):
        return True
    one, other = before.observed, now.observed
    if one is None or other is None:
        return before.message != now.message
    return abs(one - other) > SAME * max(abs(one), abs(other))

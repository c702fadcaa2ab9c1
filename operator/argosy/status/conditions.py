"""Conditions over time: a condition's time is that of the last change of its status."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from argosy.api import Condition, ConditionStatus, ConditionType, Reason
from argosy.api.values.times import timestamp
from argosy_common.wording import shortened

_LONGEST = 4096
"""Characters of a message: a status stays far below the size that the API server takes, whatever there is to say."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is so about one part now; `None` for unknown."""

    type: ConditionType
    so: bool | None
    reason: Reason
    message: str = ""

    @property
    def status(self) -> ConditionStatus:
        """As a condition's status."""
        if self.so is None:
            return ConditionStatus.UNKNOWN
        return ConditionStatus.TRUE if self.so else ConditionStatus.FALSE


def conditions(
    before: Sequence[Condition], findings: Iterable[Finding], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return the findings as conditions, each with the time of `before` where its status is the same."""
    former = {condition.type: condition for condition in before}
    return tuple(_condition(finding, former.get(finding.type), generation, now) for finding in findings)


def _condition(finding: Finding, before: Condition | None, generation: int, now: datetime) -> Condition:
    """Return a finding as a condition: the object of before where it says the same."""
    status, message, since = finding.status, bounded(finding.message), _since(before, finding, now)
    if (
        before is not None
        and before.message == message
        and before.status is status
        and before.reason == finding.reason
        and before.last_transition_time == since
        and before.observed_generation == generation
    ):
        return before
    return Condition(
        type=finding.type,
        status=status,
        reason=finding.reason,
        message=message,
        last_transition_time=since,
        observed_generation=generation,
    )


def bounded(message: str, most: int = _LONGEST) -> str:
    """Return the message, cut where it has more characters than a status has room for."""
    return shortened(message, most)


def _since(before: Condition | None, finding: Finding, now: datetime) -> str:
    if before is not None and before.status is finding.status and before.last_transition_time:
        return before.last_transition_time
    return timestamp(now)

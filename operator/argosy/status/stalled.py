"""A status over which something has the last word: a fault of the spec, or an object that could not be applied."""

from collections.abc import Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, Reason
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus
from argosy.planning.facts import Refusal
from argosy.status.conditions import Finding, conditions

Status = InferenceModelStatus | EnsembleStatus | ServingPoolStatus


def stalled(reason: Reason, message: str, settled: str) -> list[Finding]:
    """Return Ready as False and Stalled as True; `settled` is the message of Reconciling."""
    return [
        Finding(ConditionType.READY, False, reason, message),
        Finding(ConditionType.RECONCILING, False, Reason.SETTLED, settled),
        Finding(ConditionType.STALLED, True, reason, message),
    ]


def overruled(
    status: Status, findings: Sequence[Finding], before: Sequence[Condition], generation: int, now: datetime
) -> Status:
    """Return the status with these conditions in place of its own; `before` are the conditions as they were written
    last.
    """
    replaced = {finding.type for finding in findings}
    replacements = conditions(before, findings, generation, now)
    others = tuple(condition for condition in status.conditions if condition.type not in replaced)
    return status.model_copy(update={"observed_generation": generation, "conditions": (*replacements, *others)})


def refused(
    status: Status, refusals: Sequence[Refusal], before: Sequence[Condition], generation: int, now: datetime
) -> Status:
    """Return the status of a resource of which not every object could be applied."""
    message = "; ".join(f"{refusal.object}: {refusal.message}" for refusal in refusals)
    findings = stalled(Reason.NOT_APPLIED, message, "nothing can be done until the object can be applied")
    return overruled(status, findings, before, generation, now)


def failed(status: Status, error: str, before: Sequence[Condition], generation: int, now: datetime) -> Status:
    """Return the status of a resource that nothing could be decided of, for a fault of Argosy's own: what serves goes
    on.
    """
    message = (
        f"Argosy failed on this pool: {error}; what serves goes on serving, and it is tried again. This is a fault of "
        "Argosy's: please report it with the operator's log"
    )
    return overruled(
        status, stalled(Reason.RECONCILE_FAILED, message, "nothing can be decided"), before, generation, now
    )

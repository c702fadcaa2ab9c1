"""The status of a resource that is not valid: it says what is wrong, and keeps what was so of what still
serves.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from argosy.api import ConditionType, Ensemble, Problem, Reason, Resource
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus
from argosy.fleet.transitions import Finding, conditions

_EMPTY: Mapping[str, InferenceModelStatus | EnsembleStatus | ServingPoolStatus] = {
    "InferenceModel": InferenceModelStatus(),
    "Ensemble": EnsembleStatus(),
    "ServingPool": ServingPoolStatus(),
}
_REPLACED = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED, ConditionType.VALID)


def invalid_status(
    resource: Resource,
    problems: Sequence[Problem],
    previous: InferenceModelStatus | EnsembleStatus | ServingPoolStatus | None,
    now: datetime,
) -> InferenceModelStatus | EnsembleStatus | ServingPoolStatus:
    """Valid and Ready are False, Stalled is True, with every problem; the other parts stay as they were."""
    status = previous or _EMPTY[resource.kind]
    reason = _reason(resource, problems[0])
    message = "; ".join(
        f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in problems
    )
    findings = [
        Finding(ConditionType.READY, False, reason, message),
        Finding(ConditionType.RECONCILING, False, Reason.SETTLED, "nothing can be done until the spec is corrected"),
        Finding(ConditionType.STALLED, True, reason, message),
        Finding(ConditionType.VALID, False, reason, message),
    ]
    generation = resource.metadata.generation
    found = conditions(status.conditions, findings, generation, now)
    kept = tuple(condition for condition in status.conditions if condition.type not in _REPLACED)
    return status.model_copy(update={"observed_generation": generation, "conditions": (*found, *kept)})


def _reason(resource: Resource, problem: Problem) -> Reason:
    if problem.path.startswith("spec.poolRef"):
        return Reason.UNKNOWN_POOL
    if problem.path.startswith("metadata.name"):
        return Reason.NAME_CONFLICT
    if isinstance(resource, Ensemble) and problem.path.startswith(("spec.steps", "spec.inputs", "spec.outputs")):
        return Reason.INVALID_GRAPH
    return Reason.INVALID_SPEC

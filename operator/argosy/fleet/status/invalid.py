"""The status of a resource that is not valid: it says what is wrong, and keeps what was so of what still
serves.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, Ensemble, Problem, Reason, Resource
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus
from argosy.fleet.status.conditions import Finding
from argosy.fleet.status.stalled import Status, overruled, stalled

STILL = "; what it said before is still served"
EMPTY: Mapping[str, Status] = {
    "InferenceModel": InferenceModelStatus(),
    "Ensemble": EnsembleStatus(),
    "ServingPool": ServingPoolStatus(),
}
"""A status of each kind that says nothing yet."""


def invalid_status(
    resource: Resource,
    problems: Sequence[Problem],
    status: Status | None,
    before: Sequence[Condition],
    now: datetime,
    serves: bool = False,
) -> Status:
    """Valid and Ready are False, Stalled is True, with every problem; the other parts stay as in `status`.

    `before` are the conditions as they were written last. `serves`: its last valid form goes on serving.
    """
    reason = _reason(resource, problems[0])
    message = "; ".join(
        f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in problems
    )
    message += STILL if serves else ""
    findings = stalled(reason, message, "nothing can be done until the spec is corrected")
    findings.append(Finding(ConditionType.VALID, False, reason, message))
    if unbuilt := next((problem for problem in problems if problem.reason == Reason.ENGINE_NOT_BUILT), None):
        said = f"{unbuilt.path}: {unbuilt.message}"
        findings.append(Finding(ConditionType.ENGINE_READY, False, Reason.ENGINE_NOT_BUILT, said))
    return overruled(status or EMPTY[resource.kind], findings, before, resource.metadata.generation, now)


def _reason(resource: Resource, problem: Problem) -> Reason:
    if problem.reason:
        return Reason(problem.reason)
    if problem.path.startswith("spec.poolRef"):
        return Reason.UNKNOWN_POOL
    if problem.path.startswith(("metadata.name", "spec.modelName")):
        return Reason.NAME_CONFLICT
    if isinstance(resource, Ensemble) and problem.path.startswith(("spec.steps", "spec.inputs", "spec.outputs")):
        return Reason.INVALID_GRAPH
    return Reason.INVALID_SPEC

"""The status of a resource that is invalid or being deleted: it says so, and has only what is still served."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, Ensemble, Problem, Reason, Resource
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus, Status
from argosy.status.conditions import Finding
from argosy.status.stalled import overruled, stalled

STILL = "; what it said before is still served"
EMPTY: Mapping[str, Status] = {
    "InferenceModel": InferenceModelStatus(),
    "Ensemble": EnsembleStatus(),
    "ServingPool": ServingPoolStatus(),
}
"""An empty status of each kind."""
_RETAINED = (
    "observed_generation",
    "conditions",
    "selector",
    "footprint",
    "engines",
    "remaining_engines",
    "scaling",
    "cordoned_gpus",
)
"""Fields that a status keeps while no server has its resource; a pool that it came from may still serve it."""
_PARTS = (ConditionType.PLACED, ConditionType.LOADED, ConditionType.AVAILABLE)


def invalid_status(
    resource: Resource,
    problems: Sequence[Problem],
    status: Status | None,
    before: Sequence[Condition],
    now: datetime,
    serves: bool = False,
    undecided: bool = False,
) -> Status:
    """Return the status in which Valid and Ready are False and Stalled is True, with every problem.

    `before` are the conditions as they were written last. `serves`: its last valid spec is still served, so that the
    other parts stay as in `status`; `undecided`: its servers are left as they are, and the parts stay, too.
    """
    reason = _reason(resource, problems[0])
    message = "; ".join(
        f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in problems
    )
    message += STILL if serves else ""
    findings = stalled(reason, message, "nothing can be done until the spec is corrected")
    findings.append(Finding(ConditionType.VALID, False, reason, message))
    status = status or EMPTY[resource.kind]
    if not (serves or undecided):
        findings += _not_served(status, reason, message)
        status = _unserved(status)
    if unbuilt := next((problem for problem in problems if problem.reason == Reason.ENGINE_NOT_BUILT), None):
        missing = f"{unbuilt.path}: {unbuilt.message}"
        findings.append(Finding(ConditionType.ENGINE_READY, False, Reason.ENGINE_NOT_BUILT, missing))
    return overruled(status, findings, before, resource.metadata.generation, now)


def deleting(status: Status, before: Sequence[Condition], generation: int, now: datetime) -> Status:
    """Return the status of a resource that still exists after its deletion was requested."""
    message = "its deletion was requested: it is no longer served; it is removed once its finalizers have run"
    findings = [
        Finding(ConditionType.READY, False, Reason.DELETING, message),
        Finding(ConditionType.RECONCILING, True, Reason.DELETING, message),
        Finding(ConditionType.STALLED, False, Reason.SETTLED),
        *_not_served(status, Reason.DELETING, message),
    ]
    return overruled(_unserved(status), findings, before, generation, now)


def _unserved(status: Status) -> Status:
    """Return the status without replicas, versions, placements and addresses."""
    retained = {field: getattr(status, field) for field in _RETAINED if field in type(status).model_fields}
    if isinstance(status, InferenceModelStatus):
        retained["engines"] = tuple(engine.model_copy(update={"serving": False}) for engine in status.engines)
    return type(status)().model_copy(update=retained)


def _not_served(status: Status, reason: Reason, message: str) -> list[Finding]:
    """Return the conditions of this kind of resource that are False while nothing is served."""
    if isinstance(status, ServingPoolStatus):
        return [Finding(ConditionType.PLACED, False, reason, f"it runs no server: {message}")]
    return [Finding(part, False, reason, f"no server of its pool serves it: {message}") for part in _PARTS]


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

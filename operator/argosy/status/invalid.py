"""The statuses of resources that are invalid or pending deletion, and of those that no server of their pool serves.

An invalid one says so, and claims only what still serves. One that is not served claims no replicas, versions,
placements or traffic: a pool that it came from may serve it until this one does. Built engines, estimates of scaling
and cordons stay for later.
"""

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
"""A status of each kind that says nothing yet."""


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

    `before` are the conditions as they were written last. `serves`: its last valid spec goes on serving, so that the
    other parts stay as in `status`; `undecided`: nothing is done about what serves, and they stay too.
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
        findings += not_served(status, reason, message)
        status = unserved(status)
    if unbuilt := next((problem for problem in problems if problem.reason == Reason.ENGINE_NOT_BUILT), None):
        missing = f"{unbuilt.path}: {unbuilt.message}"
        findings.append(Finding(ConditionType.ENGINE_READY, False, Reason.ENGINE_NOT_BUILT, missing))
    return overruled(status, findings, before, resource.metadata.generation, now)


def deleting(status: Status, before: Sequence[Condition], generation: int, now: datetime) -> Status:
    """Return the status of a resource whose deletion was asked for, and that is still there."""
    message = "its deletion was asked for: it takes no part any more, and goes when its finalizers are done"
    findings = [
        Finding(ConditionType.READY, False, Reason.DELETING, message),
        Finding(ConditionType.RECONCILING, True, Reason.DELETING, message),
        Finding(ConditionType.STALLED, False, Reason.SETTLED),
        *not_served(status, Reason.DELETING, message),
    ]
    return overruled(unserved(status), findings, before, generation, now)


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


_PARTS = (ConditionType.PLACED, ConditionType.LOADED, ConditionType.AVAILABLE)


def unserved(status: Status) -> Status:
    """Return the status without what a resource has while it is served."""
    if isinstance(status, ServingPoolStatus):
        return ServingPoolStatus(
            observed_generation=status.observed_generation,
            conditions=status.conditions,
            selector=status.selector,
            cordoned_gpus=status.cordoned_gpus,
        )
    if isinstance(status, EnsembleStatus):
        return EnsembleStatus(
            observed_generation=status.observed_generation,
            conditions=status.conditions,
            selector=status.selector,
            scaling=status.scaling,
        )
    return InferenceModelStatus(
        observed_generation=status.observed_generation,
        conditions=status.conditions,
        selector=status.selector,
        footprint=status.footprint,
        engines=tuple(engine.model_copy(update={"serving": False}) for engine in status.engines),
        remaining_engines=status.remaining_engines,
        scaling=status.scaling,
    )


def not_served(status: Status, reason: Reason, message: str) -> list[Finding]:
    """Return the findings that go with it, of the parts that the kind of resource has."""
    if isinstance(status, ServingPoolStatus):
        return [Finding(ConditionType.PLACED, False, reason, f"it runs no server: {message}")]
    return [Finding(part, False, reason, f"no server of its pool serves it: {message}") for part in _PARTS]

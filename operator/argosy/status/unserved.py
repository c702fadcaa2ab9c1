"""The status of a resource that no server of its pool serves: it claims no replicas, versions, places or traffic.

A pool that it came from may serve it until this one does. What is remembered for later stays: engines that are built,
what scaling has learnt, GPUs that are cordoned.
"""

from argosy.api import ConditionType, Reason
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus, Status
from argosy.status.conditions import Finding

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

"""Kubernetes Events for what people should notice: a resource that became Ready, or cannot go on."""

from argosy.api import ConditionStatus, ConditionType, Resource
from argosy.cluster.record import Recorder
from argosy.fleet.status.statuses import Status

NORMAL, WARNING = "Normal", "Warning"


class Announcer:
    """Says on a resource, as an Event, what changed in its status."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def changed(self, resource: Resource, before: Status | None, now: Status) -> None:
        """`now` was written in place of `before`."""
        ready = now.condition(ConditionType.READY)
        former = before.condition(ConditionType.READY) if before else None
        if ready is None or (former is not None and (former.status, former.reason) == (ready.status, ready.reason)):
            return
        stuck = _is(now, ConditionType.STALLED)
        if not stuck and _is(now, ConditionType.RECONCILING):
            return  # on its way: how it ends is what people should notice
        await self._recorder.record(resource, WARNING if stuck else NORMAL, ready.reason.value, ready.message)


def _is(status: Status, kind: ConditionType) -> bool:
    condition = status.condition(kind)
    return condition is not None and condition.status is ConditionStatus.TRUE

"""What people should notice of scaling: what changed and why, and that there is less than the load asks for. Pure."""

from collections.abc import Iterator

from argosy.api import Reason
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ResourceStatus, ScalingStatus
from argosy.controller.events.build_events import NORMAL, WARNING, Announcement

_TROUBLES = frozenset({Reason.LIMITED_BY_CAPACITY, Reason.NO_SIGNALS})
"""Reasons that somebody may have to do something about, once anything was measured."""


def scaling_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield what became of the scaling of a model or an ensemble whose status `now` was written in place of
    `before`.
    """
    former, present = _of(before), _of(now)
    if present is None or former is None:
        return
    newest = present.history[0] if present.history else None
    if newest is not None and (not former.history or former.history[0].time != newest.time):
        grew = (newest.replicas, newest.instances) >= (newest.former_replicas, newest.former_instances)
        reason = Reason.SCALED_UP if grew else Reason.SCALED_DOWN
        yield Announcement(NORMAL, reason, newest.message)
    if present.reason in _TROUBLES and former.reason != present.reason and former.metric:
        yield Announcement(WARNING, present.reason, present.message, present.reason)


def _of(status: ResourceStatus | None) -> ScalingStatus | None:
    return status.scaling if isinstance(status, InferenceModelStatus | EnsembleStatus) else None

"""The Events of places that go to a higher priority, on both resources. Pure."""

from collections.abc import Iterator

from argosy.api.status import EnsembleStatus, InferenceModelStatus, ResourceStatus
from argosy.controller.events.announcements import NORMAL, WARNING, Announcement

PREEMPTED, PREEMPTS = "Preempted", "Preempts"


def preemption_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield the Events of what a model or an ensemble lost its place to, and of what lost places to it."""
    if not isinstance(now, InferenceModelStatus | EnsembleStatus):
        return
    former = before if isinstance(before, InferenceModelStatus | EnsembleStatus) else type(now)()
    loss = now.preempted_by
    if loss is not None and loss != former.preempted_by:
        drain = f"it has {loss.drain_seconds} s to drain"
        yield Announcement(WARNING, PREEMPTED, f"{loss.other}, of priority {loss.priority}, takes its place; {drain}")
    for gain in now.preempted:
        if gain not in former.preempted:
            drain = f"which has {gain.drain_seconds} s to drain"
            message = f"It takes the place of {gain.other}, of priority {gain.priority}, {drain}"
            yield Announcement(NORMAL, PREEMPTS, message)

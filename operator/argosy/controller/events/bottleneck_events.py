"""What people should notice of what holds requests up: that it is so, that it is something else now, that it is over.

Pure. Nothing is said where only its numbers change.
"""

from collections.abc import Iterator

from argosy.api.status import BottleneckStatus, EnsembleStatus, InferenceModelStatus, ResourceStatus
from argosy.autoscaling.bottlenecks.bottleneck import BottleneckKind
from argosy.controller.events.build_events import NORMAL, WARNING, Announcement

ENDED = "BottleneckEnded"
_HARMLESS = frozenset({BottleneckKind.IDLE_GPU, BottleneckKind.LOW_CACHE_HIT_RATE})
"""What costs money, and holds no request up."""


def bottleneck_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield what became of the bottleneck of a model or an ensemble whose status `now` was written in place of
    `before`.
    """
    former, present = _of(before), _of(now)
    if present is not None and (former is None or _key(former) != _key(present)):
        yield Announcement(
            NORMAL if present.kind in _HARMLESS else WARNING, present.kind, _message(present), present.stage
        )
    if present is None and former is not None:
        lasted = f" since {former.since}" if former.since else ""
        yield Announcement(
            NORMAL, ENDED, f"{former.kind} of {former.stage}, which was so{lasted}, is over", former.stage
        )


def _of(status: ResourceStatus | None) -> BottleneckStatus | None:
    return status.bottleneck if isinstance(status, InferenceModelStatus | EnsembleStatus) else None


def _key(bottleneck: BottleneckStatus) -> tuple[str, str]:
    return bottleneck.kind, bottleneck.stage


def _message(bottleneck: BottleneckStatus) -> str:
    return f"{bottleneck.stage}: {bottleneck.evidence}. {bottleneck.advice[:1].upper()}{bottleneck.advice[1:]}"

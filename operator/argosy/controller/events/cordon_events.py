"""What people should notice of cordoned GPUs: that one is, and that it is no more. Pure."""

from collections.abc import Iterator

from argosy.api.status import CordonedGpu, ResourceStatus, ServingPoolStatus
from argosy.controller.events.build_events import NORMAL, WARNING, Announcement

CORDONED, UNCORDONED = "GpuCordoned", "GpuUncordoned"


def cordon_events(before: ResourceStatus | None, now: ResourceStatus) -> Iterator[Announcement]:
    """Yield what became of the cordons of a pool whose status `now` was written in place of `before`."""
    former, present = _of(before), _of(now)
    for name in sorted(present.keys() - former.keys()):
        yield Announcement(WARNING, CORDONED, f"GPU {name}: {present[name].message}", name)
    for name in sorted(former.keys() - present.keys()):
        yield Announcement(NORMAL, UNCORDONED, f"GPU {name}, which had a cordon since {former[name].time}", name)


def _of(status: ResourceStatus | None) -> dict[str, CordonedGpu]:
    cordons = status.cordoned_gpus if isinstance(status, ServingPoolStatus) else ()
    return {f"{cordon.node}/{cordon.gpu}": cordon for cordon in cordons}

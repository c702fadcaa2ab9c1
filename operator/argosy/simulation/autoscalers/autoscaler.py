"""What the simulator asks of any autoscaler."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from msgspec import structs

from argosy.autoscaling.decision import NO_EJECTION, Allocation, Ejection, SpareCapacity
from argosy.simulation.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Seen:
    """What an autoscaler may know at `now`, in seconds of the trace.

    `recorder` has what was measured, of which nothing after `measured` is to be read: that is how late measurements
    are. `allocation` is what it requested last, `ready` how many replicas take requests, `queued_requests` how many
    requests wait without any; that alone is known at once.
    """

    now: float
    measured: float
    recorder: Recorder
    allocation: Allocation
    ready: int
    queued_requests: int
    spare: SpareCapacity

    def within_spare_capacity(self, replicas: int) -> Allocation:
        """So many replicas, or as many as there is room for."""
        if self.spare.replicas is not None:
            replicas = min(replicas, max(self.allocation.replicas, self.allocation.replicas + self.spare.replicas))
        return structs.replace(self.allocation, replicas=replicas)


class Autoscaler(Protocol):
    """Asked every `interval_s`, and at once for a request that comes where there is no replica, if `wakes`. `ejection`:
    the replicas that are to be sent nothing, by `ServerQueue.server`.
    """

    interval_s: float
    wakes: bool
    reason: str
    ejection: Ejection

    def decide(self, seen: Seen) -> Allocation:
        """Return what is to be; `reason` says why afterwards."""


Autoscaling = Callable[[], Autoscaler]
"""A new autoscaler that remembers nothing."""


class Fixed:
    """Keeps what there is."""

    interval_s = 60.0
    wakes = False
    reason = "fixed"
    ejection = NO_EJECTION

    def decide(self, seen: Seen) -> Allocation:
        """As it is."""
        return seen.allocation

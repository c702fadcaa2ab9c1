"""The interface of autoscalers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from msgspec import structs

from argosy.autoscaling.decision import NO_EJECTION, Allocation, Ejection, SpareCapacity
from argosy.simulation.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Seen:
    """The inputs of an autoscaler at `now`, in seconds of the trace.

    `recorder`: the measurements; an autoscaler must not read later ones than `measured`, which models their delay.
    `allocation`: its last request; `ready`: replicas that take requests; `queued_requests`: requests that wait while
    there is no replica, known without delay.
    """

    now: float
    measured: float
    recorder: Recorder
    allocation: Allocation
    ready: int
    queued_requests: int
    spare: SpareCapacity

    def within_spare_capacity(self, replicas: int) -> Allocation:
        """Return the allocation with these replicas, or with as many as the spare capacity allows."""
        if self.spare.replicas is not None:
            replicas = min(replicas, max(self.allocation.replicas, self.allocation.replicas + self.spare.replicas))
        return structs.replace(self.allocation, replicas=replicas)


class Autoscaler(Protocol):
    """Decides every `interval_s` seconds, and, if `wakes`, at once when a request arrives and there is no replica.
    `ejection`: the replicas that get no requests, by `ServerQueue.server`.
    """

    interval_s: float
    wakes: bool
    reason: str
    ejection: Ejection

    def decide(self, seen: Seen) -> Allocation:
        """Return the new allocation, and set `reason`."""


Autoscaling = Callable[[], Autoscaler]
"""Creates an autoscaler without state."""


class Fixed:
    """Changes nothing."""

    interval_s = 60.0
    wakes = False
    reason = "fixed"
    ejection = NO_EJECTION

    def decide(self, seen: Seen) -> Allocation:
        """Return the present allocation."""
        return seen.allocation

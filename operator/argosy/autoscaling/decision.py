"""What is decided of one member, and why."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from argosy.api.conditions import Reason
from argosy.autoscaling.policy import Bounds, Served


class Allocation(Struct, frozen=True):
    """What a member has, or is to have. `instances` of one device of a replica. `window_s`: how long a batch waits for
    more, `max_batch`: the most rows it may have; None where the spec decides.
    """

    replicas: int = 1
    instances: int = 1
    window_s: float | None = None
    max_batch: int | None = None

    def within(self, bounds: Bounds) -> "Allocation":
        """Return the allocation brought within bounds, which may have been edited since it was decided. A window that
        Argosy may set begins at 0 seconds; a limit of batches that is not below `bounds.max_batch` is dropped.
        """
        longest, batch = bounds.max_window_s, self.max_batch
        return Allocation(
            min(max(self.replicas, bounds.min_replicas), bounds.max_replicas),
            min(max(self.instances, bounds.min_instances), bounds.max_instances),
            None if longest is None else min(self.window_s or 0.0, longest),
            None if batch is None or batch >= bounds.max_batch else batch,
        )


class SpareCapacity(Struct, frozen=True):
    """Capacity that a member can get in addition to what it has: `instances` on each of its devices, `replicas` on
    servers that run or on new ones. None: unknown, which is no limit. `missing`: what one replica more than that lacks,
    in words with numbers.
    """

    instances: int | None = None
    replicas: int | None = None
    missing: str = ""


class Change(Struct, frozen=True):
    """An entry of the history: when what became what, and why."""

    at: datetime
    before: Allocation
    after: Allocation
    reason: Reason
    message: str


class Lowering(Struct, frozen=True):
    """That it was made smaller since memory ran out: when, of what, and why, with the numbers. It stays so for that.
    `most_instances`: those on each device that memory allows, where that is fewer than bounds do.
    """

    at: datetime
    served: Served
    why: str
    most_instances: int | None = None


class Ejection(Struct, frozen=True):
    """`servers` that nothing is to be sent to, those with the longest queues first, as long as others are left which
    are at least `keep`.
    """

    servers: tuple[str, ...] = ()
    keep: int = 1

    def among(self, reachable: Collection[str]) -> tuple[str, ...]:
        """Of the servers that requests could reach now, new ones among them, those that get none: never all of them."""
        spare = max(0, len(reachable) - self.keep)
        return tuple([server for server in self.servers if server in reachable][:spare])


NO_EJECTION = Ejection()


class Decision(Struct, frozen=True):
    """What is to be, and why. `desired`: the replicas that the load asks for, be there room and leave or not.

    `metric` names what decided, as `latency p99` or `busy`; `observed` and `target` are its two numbers. `limited_by`:
    what keeps `allocation` from `desired`: a field's path in the API, what is missing or `signals`. `message` is
    one sentence with the numbers. `change`: the newest change, of this decision or an earlier one. `lowering`: what is
    smaller for want of memory, if anything. `estimate`: the service times that it is based on, in words. `ejection`:
    servers that are to be sent nothing for the length of their queues.
    """

    allocation: Allocation
    desired: int
    reason: Reason
    message: str
    metric: str = ""
    observed: float | None = None
    target: float | None = None
    limited_by: str = ""
    change: Change | None = None
    lowering: Lowering | None = None
    estimate: str = ""
    ejection: Ejection = NO_EJECTION

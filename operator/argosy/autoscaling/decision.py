"""The decision on one member, with its reason."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from argosy.api.conditions import Reason
from argosy.autoscaling.policy import Bounds, Served


class Allocation(Struct, frozen=True):
    """The allocation of a member. `instances`: on each device of a replica. `window_s`: how long a batch waits for more
    requests; `max_batch`: the most rows of a batch. Both are None where the spec decides.
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
    """Capacity that a member can get in addition to its allocation: `instances` on each of its devices, `replicas` on
    running or new servers. None is unknown and does not limit. `missing`: the resource that the next replica lacks, in
    words with numbers.
    """

    instances: int | None = None
    replicas: int | None = None
    missing: str = ""


class AllocationChange(Struct, frozen=True):
    """An entry of the history: a change of an allocation, with its time, reason and message."""

    at: datetime
    before: Allocation
    after: Allocation
    reason: Reason
    message: str


class Lowering(Struct, frozen=True):
    """A reduction after memory ran out. It applies as long as `served` is unchanged. `why` is in words, with numbers.
    `most_instances`: the most instances on each device that memory allows; None without such a limit.
    """

    at: datetime
    served: Served
    why: str
    most_instances: int | None = None


class Ejection(Struct, frozen=True):
    """Servers that are sent no requests, the longest queue first, as long as at least `keep` others are reachable."""

    servers: tuple[str, ...] = ()
    keep: int = 1

    def among(self, reachable: Collection[str]) -> tuple[str, ...]:
        """Return the ejected servers among `reachable`, leaving at least `keep` that receive requests."""
        spare = max(0, len(reachable) - self.keep)
        return tuple([server for server in self.servers if server in reachable][:spare])


NO_EJECTION = Ejection()


class Decision(Struct, frozen=True):
    """The new allocation of a member, with its reason. `desired`: the replicas that the load needs, without limits.

    `metric`: the metric that decided, such as `latency p99` or `busy`; `observed` and `target` are its values.
    `limited_by`: the reason why `allocation` differs from `desired`: a path of a field, a missing resource, or
    `signals`. `message`: one sentence with the numbers. `change`: the newest change, of this decision or an earlier
    one. `lowering`: the reduction after memory ran out, if any. `estimate`: the service times that it is based on, in
    words. `ejection`: servers that are sent no requests because their queues are too long.
    """

    allocation: Allocation
    desired: int
    reason: Reason
    message: str
    metric: str = ""
    observed: float | None = None
    target: float | None = None
    limited_by: str = ""
    change: AllocationChange | None = None
    lowering: Lowering | None = None
    estimate: str = ""
    ejection: Ejection = NO_EJECTION

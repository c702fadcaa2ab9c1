"""What a scheduler is: told of requests, of instances that come and go, and of the time; asked what is to run.

A dispatcher has one scheduler and knows nothing of how it decides. An instance is known by a number that is never used
again: a copy of the model that replaces a lost one is another instance, with no memory of what the lost one was doing.
Which instances are free is the scheduler's to know, because a request may be bound to one of them (a sequence), or an
instance may have to wait for resources (a rate limit). The place of a request in its batch is its slot.
"""

from collections import deque
from typing import Protocol

from argosy_runtime.errors import ServingError

from .queued_request import QueuedRequest


class Batch:
    """What one instance is to run now."""

    __slots__ = ("instance", "requests")

    def __init__(self, instance: int, requests: list[QueuedRequest]) -> None:
        self.instance = instance
        self.requests = requests


class Decision:
    """What follows: batches to run now, requests to refuse, when to ask again (None: at the next event)."""

    __slots__ = ("batches", "expired", "wake_at")

    def __init__(self, expired: list[QueuedRequest]) -> None:
        self.batches: list[Batch] = []
        self.expired = expired
        self.wake_at: int | None = None


class Scheduler(Protocol):
    """Decides when, where and together with what the requests of one model version run. Times are nanoseconds.

    Every request that `submit` took leaves by exactly one of: a batch, `Decision.expired`, `cancel`, `drain`.
    """

    @property
    def pending(self) -> int:
        """Requests that wait."""

    def submit(self, queued: QueuedRequest) -> ServingError | None:
        """A request arrives. Returns why it is refused, or None."""

    def cancel(self, queued: QueuedRequest) -> bool:
        """Forget a request that waits; False if it does not wait here any more."""

    def drain(self) -> list[QueuedRequest]:
        """Give up all that waits: nothing will run any more."""

    def instance_added(self, instance: int) -> None:
        """An instance is loaded, and free."""

    def instance_freed(self, instance: int) -> None:
        """An instance can take another batch. One that has died stays dead."""

    def instance_died(self, instance: int) -> None:
        """An instance is no more; what it was running is answered by others."""

    def advance(self, now: int) -> Decision:
        """Decide what runs now; the instances of the batches are taken."""


class FreeInstances:
    """Which instances live, and which of them are free, the longest free first."""

    __slots__ = ("_alive", "_free")

    def __init__(self) -> None:
        self._alive: set[int] = set()
        self._free: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._free)

    def added(self, instance: int) -> None:
        """See `Scheduler`."""
        self._alive.add(instance)
        self._free.append(instance)

    def freed(self, instance: int) -> None:
        """See `Scheduler`."""
        if instance in self._alive:
            self._free.append(instance)

    def died(self, instance: int) -> None:
        """See `Scheduler`."""
        self._alive.discard(instance)
        if instance in self._free:
            self._free.remove(instance)

    def take(self) -> int:
        """The one that has been free the longest."""
        return self._free.popleft()

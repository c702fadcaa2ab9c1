"""What a scheduler is: told of requests, of instances that come and go, and of the time; asked what is to run.

A dispatcher has one scheduler and knows nothing of how it decides. An instance is known by a number that is never used
again: a copy of the model that replaces a lost one is another instance, with no memory of what the lost one was doing.
A scheduler is told of each, because a request may be bound to one of them (a sequence), or have to wait for resources
that one holds (a rate limit). The place of a request in its batch is its slot.
"""

from collections.abc import Sequence
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
    """What follows: batches to run now, requests to refuse and why, when to ask again (None: at the next event)."""

    __slots__ = ("batches", "refused", "wake_at")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.refused: list[Refusal] = []
        self.wake_at: int | None = None


class Refusal:
    """A request that had been taken and will not run."""

    __slots__ = ("queued", "why")

    def __init__(self, queued: QueuedRequest, why: ServingError) -> None:
        self.queued = queued
        self.why = why


class Scheduler(Protocol):
    """Decides when, where and together with what the requests of one model version run. Times are nanoseconds.

    Every request that `submit` took leaves by exactly one of: a batch, `Decision.refused`, `cancel`, `drain`.
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
        """An instance can take another batch."""

    def instance_died(self, instance: int) -> None:
        """An instance is no more; what it was running is answered by others."""

    def instance_retired(self, instance: int) -> None:
        """An instance takes no more batches; what it runs it finishes."""

    def advance(self, now: int, free: Sequence[int]) -> Decision:
        """Decide what runs now, at most one batch on each `free` instance, in their order.

        The fastest stand first, and of those alike the longest free.
        """

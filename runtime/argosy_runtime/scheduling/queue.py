"""The queue before a model: priority levels, each first in first out, with limits and timeouts.

A request whose timeout strikes is either expired (REJECT) or sent behind its level's other requests (DELAY).
"""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from argosy_runtime.errors import FailureReason, ServingError, unavailable

from .queue_policy import QueuePolicies, QueuePolicy
from .queued_request import QueuedRequest

T = TypeVar("T", bound=QueuedRequest)


class _Level(Generic[T]):
    """One priority level: those in time, then those delayed."""

    __slots__ = ("delayed", "policy", "waiting")

    def __init__(self, policy: QueuePolicy) -> None:
        self.policy = policy
        self.waiting: deque[T] = deque()
        self.delayed: deque[T] = deque()

    def __len__(self) -> int:
        return len(self.waiting) + len(self.delayed)

    def __iter__(self) -> Iterator[T]:
        yield from self.waiting
        yield from self.delayed

    def expire(self, now: int) -> list[T]:
        late = [queued for queued in self.waiting if queued.deadline is not None and queued.deadline <= now]
        if not late:
            return []
        gone = set(map(id, late))
        self.waiting = deque(queued for queued in self.waiting if id(queued) not in gone)
        if not self.policy.delay_on_timeout:
            return late
        for queued in late:
            queued.deadline = None
            self.delayed.append(queued)
        return []

    def remove(self, queued: T) -> bool:
        for queue in (self.waiting, self.delayed):
            if queued in queue:
                queue.remove(queued)
                return True
        return False

    def pop(self) -> T:
        return self.waiting.popleft() if self.waiting else self.delayed.popleft()


class RequestQueue(Generic[T]):
    """Tickets in the order in which they should run."""

    def __init__(self, policies: QueuePolicies) -> None:
        self._policies = policies
        self._levels: dict[int, _Level[T]] = {}
        self._size = 0
        self._timed = False

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        for level in self._levels.values():
            yield from level

    def push(self, queued: T) -> ServingError | None:
        """Let a queued in, or say why not."""
        queued.priority = self._policies.level(queued.request.priority)
        level = self._levels.get(queued.priority)
        if level is None:
            level = self._open(queued.priority)
        if level.policy.max_size and len(level) >= level.policy.max_size:
            return unavailable(f"{queued.request.log_prefix}Exceeds maximum queue size", FailureReason.REJECTED)
        queued.deadline = level.policy.deadline(queued)
        self._timed = self._timed or queued.deadline is not None
        level.waiting.append(queued)
        self._size += 1
        return None

    def _open(self, priority: int) -> _Level[T]:
        self._levels[priority] = _Level(self._policies.policy(priority))
        self._levels = dict(sorted(self._levels.items()))
        return self._levels[priority]

    def take(self, count: int) -> list[T]:
        """Remove and return the first `count` queued requests."""
        taken: list[T] = []
        for level in self._levels.values():
            while level and len(taken) < count:
                taken.append(level.pop())
        self._size -= len(taken)
        return taken

    def remove(self, queued: T) -> bool:
        """Take a cancelled queued out; False if it is not waiting here."""
        level = self._levels.get(queued.priority)
        if level is None or not level.remove(queued):
            return False
        self._size -= 1
        return True

    def expire(self, now: int) -> list[T]:
        """Apply the timeouts: the queued requests to refuse are removed and returned."""
        if not self._timed:
            return []
        expired = [queued for level in self._levels.values() for queued in level.expire(now)]
        self._size -= len(expired)
        return expired

    def next_deadline(self) -> int | None:
        """When the next timeout strikes."""
        if not self._timed:
            return None
        deadlines = [queued.deadline for queued in self if queued.deadline is not None]
        self._timed = bool(deadlines)
        return min(deadlines, default=None)


def timeout_error(queued: QueuedRequest) -> ServingError:
    """What the client of an expired queued is told."""
    return unavailable(f"{queued.request.log_prefix}Request timeout expired", FailureReason.REJECTED)

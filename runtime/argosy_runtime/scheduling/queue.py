"""The queue before a model: priority levels, each first in first out, with limits and timeouts.

A request whose timeout strikes is either expired (REJECT) or sent behind its level's other requests (DELAY).
"""

from collections import deque
from collections.abc import Iterable, Iterator

from argosy_runtime.errors import FailureReason, ServingError, unavailable

from .queue_policy import QueuePolicies, QueuePolicy
from .queued_request import QueuedRequest


class _Level:
    """One priority level: those in time, then those delayed."""

    __slots__ = ("delayed", "policy", "waiting")

    def __init__(self, policy: QueuePolicy) -> None:
        self.policy = policy
        self.waiting: deque[QueuedRequest] = deque()
        self.delayed: deque[QueuedRequest] = deque()

    def __len__(self) -> int:
        return len(self.waiting) + len(self.delayed)

    def expire(self, now: int) -> list[QueuedRequest]:
        late = [queued for queued in self.waiting if queued.deadline is not None and queued.deadline <= now]
        if not late:
            return late
        gone = set(map(id, late))
        self.waiting = deque([queued for queued in self.waiting if id(queued) not in gone])
        if not self.policy.delay_on_timeout:
            return late
        for queued in late:
            queued.deadline = None
            self.delayed.append(queued)
        return []

    def remove(self, queued: QueuedRequest) -> bool:
        for queue in (self.waiting, self.delayed):
            if queued in queue:
                queue.remove(queued)
                return True
        return False

    def pop(self) -> QueuedRequest:
        return self.waiting.popleft() if self.waiting else self.delayed.popleft()


class RequestQueue:
    """Requests in the order in which they should run.

    `next_deadline` is when to look at the timeouts again: not after the next one strikes, and maybe before, where the
    request that it was has left.
    """

    def __init__(self, policies: QueuePolicies) -> None:
        self._policies = policies
        self._levels: dict[int, _Level] = {}
        self._size = 0
        self.next_deadline: int | None = None

    def __len__(self) -> int:
        return self._size

    def front(self) -> Iterable[QueuedRequest]:
        """The requests in order."""
        if len(self._levels) == 1:
            for level in self._levels.values():
                if not level.delayed:
                    return level.waiting
        return self._ordered()

    def _ordered(self) -> Iterator[QueuedRequest]:
        for level in self._levels.values():
            yield from level.waiting
            yield from level.delayed

    def push(self, queued: QueuedRequest) -> ServingError | None:
        """Let a request in, or say why not."""
        level = self._level_of(queued)
        policy = level.policy
        if policy.max_size and len(level) >= policy.max_size:
            return unavailable(f"{queued.request.log_prefix}Exceeds maximum queue size", FailureReason.REJECTED)
        deadline = queued.deadline = policy.deadline(queued)
        if deadline is not None and (self.next_deadline is None or deadline < self.next_deadline):
            self.next_deadline = deadline
        level.waiting.append(queued)
        self._size += 1
        return None

    def follow(self, policies: QueuePolicies) -> None:
        """Other policies from now on. Who waits keeps the order and the timeout, and goes to the level of its wish."""
        self._policies = policies
        former = list(self._levels.values())
        self._levels = {}
        for level in former:
            for queued in level.waiting:
                self._level_of(queued).waiting.append(queued)
            for queued in level.delayed:
                self._level_of(queued).delayed.append(queued)

    def _level_of(self, queued: QueuedRequest) -> _Level:
        queued.priority = priority = self._policies.level(queued.request.priority)
        level = self._levels.get(priority)
        return self._open(priority) if level is None else level

    def _open(self, priority: int) -> _Level:
        self._levels[priority] = _Level(self._policies.policy(priority))
        self._levels = dict(sorted(self._levels.items()))
        return self._levels[priority]

    def take(self, count: int) -> list[QueuedRequest]:
        """Remove and return the first `count` requests."""
        taken: list[QueuedRequest] = []
        for level in self._levels.values():
            while len(taken) < count and level:
                taken.append(level.pop())
        self._left(len(taken))
        return taken

    def remove(self, queued: QueuedRequest) -> bool:
        """Take a cancelled request out; False if it is not waiting here."""
        level = self._levels.get(queued.priority)
        if level is None or not level.remove(queued):
            return False
        self._left(1)
        return True

    def _left(self, count: int) -> None:
        self._size -= count
        if not self._size:
            self.next_deadline = None

    def expire(self, now: int) -> list[QueuedRequest]:
        """Apply the timeouts: the requests to refuse are removed and returned."""
        if self.next_deadline is None or now < self.next_deadline:
            return []
        expired = [queued for level in self._levels.values() for queued in level.expire(now)]
        self._size -= len(expired)
        deadlines = [queued.deadline for queued in self._ordered() if queued.deadline is not None]
        self.next_deadline = min(deadlines, default=None)
        return expired


def timeout_error(queued: QueuedRequest) -> ServingError:
    """What the client of an expired request is told."""
    return unavailable(f"{queued.request.log_prefix}Request timeout expired", FailureReason.TIMEOUT)

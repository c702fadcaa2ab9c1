"""The queue of a model: priority levels, each first in first out, with limits and timeouts.

A request whose timeout expires is either refused (REJECT) or moved behind its level's other requests (DELAY).
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from argosy_runtime.errors import FailureReason, ServingError, unavailable

from .deadlines import Deadlines
from .queue_policy import QueuePolicies, QueuePolicy
from .queued_request import QueuedRequest


class _Level:
    """One priority level: requests in time, then delayed ones. Ordered dicts as sets, to remove any one at once."""

    __slots__ = ("delayed", "policy", "waiting")

    def __init__(self, policy: QueuePolicy) -> None:
        self.policy = policy
        self.waiting: OrderedDict[QueuedRequest, None] = OrderedDict()
        self.delayed: OrderedDict[QueuedRequest, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self.waiting) + len(self.delayed)

    def remove(self, queued: QueuedRequest) -> bool:
        for queue in (self.waiting, self.delayed):
            if queued in queue:
                del queue[queued]
                return True
        return False

    def pop(self) -> QueuedRequest:
        queue = self.waiting or self.delayed
        queued, _ = queue.popitem(last=False)
        return queued


class RequestQueue:
    """Requests in the order in which they should run. The cost of a request does not grow with the queue's length."""

    def __init__(self, policies: QueuePolicies) -> None:
        self._policies = policies
        self._levels: dict[int, _Level] = {}
        self._size = 0
        self._deadlines = Deadlines()

    def __len__(self) -> int:
        return self._size

    @property
    def next_deadline(self) -> int | None:
        """Time of the next timeout; None without one."""
        return self._deadlines.next

    def front(self) -> Iterable[QueuedRequest]:
        """Return the requests in order."""
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
        """Add a request. Return the error where it is refused."""
        level = self._level_of(queued)
        policy = level.policy
        if policy.max_size and len(level) >= policy.max_size:
            return unavailable(f"{queued.request.log_prefix}Exceeds maximum queue size", FailureReason.REJECTED)
        deadline = queued.deadline = policy.deadline(queued)
        if deadline is not None:
            self._deadlines.add(queued, deadline)
        level.waiting[queued] = None
        self._size += 1
        return None

    def follow(self, policies: QueuePolicies) -> None:
        """Apply other policies. Waiting requests keep their order and timeouts, and move to their new levels."""
        self._policies = policies
        former = list(self._levels.values())
        self._levels = {}
        for level in former:
            for queued in level.waiting:
                self._level_of(queued).waiting[queued] = None
            for queued in level.delayed:
                self._level_of(queued).delayed[queued] = None

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
                queued = level.pop()
                if queued.deadline is not None:
                    self._deadlines.forget(queued)
                taken.append(queued)
        self._size -= len(taken)
        return taken

    def remove(self, queued: QueuedRequest) -> bool:
        """Remove a cancelled request. Return False if it is not waiting here."""
        level = self._levels.get(queued.priority)
        if level is None or not level.remove(queued):
            return False
        if queued.deadline is not None:
            self._deadlines.forget(queued)
        self._size -= 1
        return True

    def expire(self, now: int) -> list[QueuedRequest]:
        """Apply the timeouts in their order: requests to refuse are removed and returned."""
        expired: list[QueuedRequest] = []
        for queued in self._deadlines.struck(now):
            level = self._levels[queued.priority]
            del level.waiting[queued]
            if level.policy.delay_on_timeout:
                queued.deadline = None
                level.delayed[queued] = None
            else:
                expired.append(queued)
        self._size -= len(expired)
        return expired


def timeout_error(queued: QueuedRequest) -> ServingError:
    """Return the error of an expired request."""
    return unavailable(f"{queued.request.log_prefix}Request timeout expired", FailureReason.TIMEOUT)

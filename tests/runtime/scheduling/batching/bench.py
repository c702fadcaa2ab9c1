"""A dynamic batcher in virtual time, and requests for it."""

import numpy as np

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy
from argosy_runtime.scheduling.queued_request import QueuedRequest
from argosy_runtime.scheduling.scheduler import Decision

US = 1_000


def queued(arrived: int = 0, size: int = 1, key=None, priority: int = 0, timeout_us: int = 0) -> QueuedRequest:
    """Return a request of `size` rows that has arrived at a time in ns; `key` as a batch has it."""
    tensor = Tensor("X", "FP32", np.zeros((size, 1), np.float32))
    request = InferRequest("m", {"X": tensor}, priority=priority, timeout_us=timeout_us)
    return QueuedRequest(request, arrived, size, key)


class Bench:
    """A scheduler and its free instances."""

    def __init__(self, instances: int, rules: BatchingRules, hold: int = 0) -> None:
        self.scheduler = DynamicBatcher(rules, hold)
        self.free = list(range(instances))

    def submit(self, queued: QueuedRequest) -> ServingError | None:
        return self.scheduler.submit(queued)

    def cancel(self, queued: QueuedRequest) -> bool:
        return self.scheduler.cancel(queued)

    @property
    def pending(self) -> int:
        return self.scheduler.pending

    def advance(self, now: int) -> Decision:
        """Advance the scheduler; an instance that got a batch is no longer free."""
        step = self.scheduler.advance(now, self.free)
        for batch in step.batches:
            self.free.remove(batch.instance)
        return step


def batcher(instances: int = 1, **rules) -> Bench:
    """Return a scheduler by these rules, of batches of 8 rows unless they say otherwise."""
    return Bench(instances, BatchingRules(**{"max_batch_size": 8, **rules}))


def ran(step: Decision) -> list[list[QueuedRequest]]:
    """Return the requests of each batch of a step."""
    return [batch.requests for batch in step.batches]


def refused(step: Decision) -> list[QueuedRequest]:
    """Return the requests that a step refuses."""
    return [refusal.queued for refusal in step.refused]


def submit(scheduler: Bench, *waiting: QueuedRequest) -> None:
    """Submit requests, none of which is refused."""
    for one in waiting:
        assert scheduler.submit(one) is None


def policy(**fields) -> QueuePolicies:
    """Return one policy for all levels."""
    return QueuePolicies(QueuePolicy(**fields), {})

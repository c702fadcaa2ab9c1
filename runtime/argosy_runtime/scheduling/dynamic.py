"""Dynamic batching: requests that arrive close together run as one batch.

`delay` is max_queue_delay_microseconds, `preferred` the preferred batch sizes (the maximum where none is given):

1. A batch takes queued requests in queue order while their keys are equal and their sizes fit into `max_batch_size`.
2. It goes at once when it reaches the largest preferred size, or when the next queued cannot join it.
3. It goes with the largest preferred size it holds, where it holds one.
4. Otherwise it goes when its oldest queued has waited for `delay`, with all it has.

A model without dynamic batching is the same machine with one request to a batch.
"""

from dataclasses import dataclass, field
from typing import Generic

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError

from .queue import RequestQueue, T
from .queue_policy import UNBOUNDED, QueuePolicies


@dataclass(frozen=True, slots=True)
class BatchingRules:
    """What shapes a batch. Sizes in requests' rows, `delay_ns` in nanoseconds."""

    max_batch_size: int = 1
    delay_ns: int = 0
    preferred: frozenset[int] = frozenset()
    merge: bool = True
    policies: QueuePolicies = UNBOUNDED
    preserve_ordering: bool = False

    @property
    def target(self) -> int:
        """The size at which waiting any longer makes nothing better."""
        return max(self.preferred, default=self.max_batch_size)

    @classmethod
    def of(cls, config: ModelConfig) -> "BatchingRules":
        """Read the rules from a model's configuration."""
        if not config.HasField("dynamic_batching") or config.max_batch_size == 0:
            return cls(max_batch_size=max(1, config.max_batch_size), merge=False)
        batching = config.dynamic_batching
        return cls(
            max_batch_size=config.max_batch_size,
            delay_ns=batching.max_queue_delay_microseconds * 1_000,
            preferred=frozenset(batching.preferred_batch_size),
            policies=QueuePolicies.of(batching),
            preserve_ordering=batching.preserve_ordering,
        )


@dataclass(slots=True)
class Advance(Generic[T]):
    """What was decided: batches to run now, queued requests to refuse, when to ask again (None: at the next event)."""

    batches: list[list[T]] = field(default_factory=list)
    expired: list[T] = field(default_factory=list)
    wake_at: int | None = None


class DynamicBatcher(Generic[T]):
    """The queue of one model version and the rules by which batches leave it."""

    def __init__(self, rules: BatchingRules) -> None:
        self._rules = rules
        self._queue: RequestQueue[T] = RequestQueue(rules.policies)

    @property
    def pending(self) -> int:
        """Requests waiting."""
        return len(self._queue)

    def submit(self, queued: T) -> ServingError | None:
        """A request arrives. Returns why it is refused, or None."""
        return self._queue.push(queued)

    def cancel(self, queued: T) -> bool:
        """Forget a waiting queued; False if it no longer waits."""
        return self._queue.remove(queued)

    def drain(self) -> list[T]:
        """Give up all that waits (the model is going away)."""
        return self._queue.take(len(self._queue))

    def advance(self, now: int, free_instances: int) -> Advance[T]:
        """Decide what runs now on at most `free_instances` instances."""
        result: Advance[T] = Advance(expired=self._queue.expire(now))
        while len(result.batches) < free_instances and self._queue:
            count, wait_until = self._next_batch(now)
            if not count:
                result.wake_at = wait_until
                break
            result.batches.append(self._queue.take(count))
        deadline = self._queue.next_deadline()
        if deadline is not None:
            result.wake_at = deadline if result.wake_at is None else min(deadline, result.wake_at)
        return result

    def _next_batch(self, now: int) -> tuple[int, int | None]:
        """How many queued requests form the next batch; 0 and a time where it is better to wait."""
        if not self._rules.merge:
            return 1, None
        count, best, oldest, closed = self._gather()
        if closed or oldest + self._rules.delay_ns <= now:
            return count, None
        if best:
            return best, None
        return 0, oldest + self._rules.delay_ns

    def _gather(self) -> tuple[int, int, int, bool]:
        """Walk the queue: requests that fit, those at the last preferred size, oldest arrival, whether it is full."""
        rules = self._rules
        size = count = best = 0
        oldest = 0
        key = None
        for queued in self._queue:
            if count == 0:
                key, oldest = queued.key, queued.arrived
            elif queued.key != key or size + queued.size > rules.max_batch_size:
                return count, best, oldest, True
            count += 1
            size += queued.size
            oldest = min(oldest, queued.arrived)
            if size in rules.preferred:
                best = count
            if size >= rules.target:
                return count, best, oldest, True
        return count, best, oldest, False

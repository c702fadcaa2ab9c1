"""Dynamic batching: requests that arrive close together run as one batch.

`delay` is max_queue_delay_microseconds, `preferred` the preferred batch sizes (the maximum where none is given):

1. A batch takes queued requests in queue order while their keys are equal, their sizes fit into `max_batch_size`, and
   the model's own strategy, where it has one, includes them.
2. Where it holds a preferred size it goes at once, with the largest one it holds; where it holds more than the largest
   preferred size, and no preferred one, with what fits into that, or with one request that is larger.
3. Where neither is so it goes at once, with all it has, if the next queued cannot join it, or if there is no `delay`.
   Copies for a shadow, which come last, share batches with copies alone, and no batch of requests goes sooner for them.
4. Once its oldest queued has waited for `delay` it goes with all it has in any case.

It goes to the fastest free instance: of those on GPUs the one that has been free the longest, and to one on the CPU
only while no GPU's is free. A model without dynamic batching is the same machine with one request to a batch; one with
dynamic batching but without a batch dimension too. Queue policies hold for all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError
from argosy_runtime.modelconfig.parameters.queue_policies import queue_policies
from argosy_runtime.scheduling.queue import RequestQueue, timeout_error
from argosy_runtime.scheduling.queue_policy import SHADOW_LEVEL, UNBOUNDED, QueuePolicies
from argosy_runtime.scheduling.queued_request import QueuedRequest
from argosy_runtime.scheduling.scheduler import Batch, Decision, Refusal, Scheduler

from .strategy import BatchStrategy


@dataclass(frozen=True)
class BatchingRules:
    """The rules of a batch. Sizes in requests' rows, `delay_ns` in nanoseconds."""

    max_batch_size: int = 1
    delay_ns: int = 0
    preferred: frozenset[int] = frozenset()
    merge: bool = True
    policies: QueuePolicies = UNBOUNDED
    preserve_ordering: bool = False

    @property
    def target(self) -> int:
        """Rows of a batch at which waiting any longer improves nothing."""
        return max(self.preferred, default=self.max_batch_size)

    @classmethod
    def of(cls, config: ModelConfig) -> "BatchingRules":
        """Read the rules from a model's configuration."""
        size = max(1, config.max_batch_size)
        if not config.HasField("dynamic_batching"):
            declared = queue_policies(config)
            policies = UNBOUNDED if declared is None else QueuePolicies.of(declared)
            return cls(max_batch_size=size, merge=False, policies=policies)
        batching = config.dynamic_batching
        return cls(
            max_batch_size=size,
            delay_ns=batching.max_queue_delay_microseconds * 1_000,
            preferred=frozenset(batching.preferred_batch_size),
            policies=QueuePolicies.of(batching),
            preserve_ordering=batching.preserve_ordering,
        )


class DynamicBatcher(Scheduler):
    """One queue for all instances of a model version: any of them may run any request.

    `strategy` decides, after the rules, which requests share a batch; it may be set before the first request. Nothing
    leaves before `hold` requests wait: a debugging aid, for models that merge requests.
    """

    def __init__(self, rules: BatchingRules, hold: int = 0) -> None:
        self._shape(rules)
        self._queue = RequestQueue(rules.policies)
        self.strategy: BatchStrategy | None = None
        self._hold = hold if rules.merge else 0

    def _shape(self, rules: BatchingRules) -> None:
        self._merge = rules.merge
        self._most = rules.target
        # Without a delay nothing is read beyond what would go at once.
        self._limit = rules.max_batch_size if rules.delay_ns else rules.target
        self._delay = rules.delay_ns
        self._preferred = rules.preferred

    def apply(self, config: ModelConfig) -> None:
        self.follow(BatchingRules.of(config))

    def follow(self, rules: BatchingRules) -> None:
        """Apply other rules. Waiting requests keep their order and timeouts, and are not refused by the new limits."""
        self._shape(rules)
        self._queue.follow(rules.policies)

    @property
    def pending(self) -> int:
        return len(self._queue)

    def submit(self, queued: QueuedRequest) -> ServingError | None:
        return self._queue.push(queued)

    def cancel(self, queued: QueuedRequest) -> bool:
        removed = self._queue.remove(queued)
        if removed and self._hold:
            self._hold -= 1
        return removed

    def drain(self) -> list[QueuedRequest]:
        return self._queue.take(len(self._queue))

    def advance(self, now: int, free: Sequence[int]) -> Decision:
        decision = Decision()
        if self._hold:
            if len(self._queue) < self._hold:
                return decision
            self._hold = 0
        for queued in self._queue.expire(now):
            decision.refused.append(Refusal(queued, timeout_error(queued)))
        for instance in free:
            if not len(self._queue):
                break
            count, ready_at = self._next_batch(now)
            if not count:
                decision.wake_at = ready_at
                break
            decision.batches.append(Batch(instance, self._queue.take(count)))
        deadline = self._queue.next_deadline
        if deadline is not None:
            decision.wake_at = deadline if decision.wake_at is None else min(deadline, decision.wake_at)
        return decision

    def _next_batch(self, now: int) -> tuple[int, int]:
        """Return how many queued requests form the next batch; 0, and when it goes, where waiting is better."""
        if not self._merge:
            return 1, 0
        strategy = self.strategy
        size = count = best = oldest = 0
        key = None
        is_shadow = is_full = False
        for queued in self._queue.front():
            if count == 0:
                key, oldest = queued.key, queued.arrived
                is_shadow = queued.priority == SHADOW_LEVEL
                if strategy is not None:
                    strategy.begin(queued)
            elif queued.priority == SHADOW_LEVEL and not is_shadow:
                break
            elif (
                queued.key != key
                or size + queued.size > self._limit
                or (strategy is not None and not strategy.include(queued))
            ):
                is_full = True
                break
            elif not best and size + queued.size > self._most:
                best = count
            count += 1
            size += queued.size
            oldest = min(oldest, queued.arrived)
            if size in self._preferred:
                best = count
        goes_at = oldest + self._delay
        if best and (not self._delay or now < goes_at):
            return best, 0
        return (count, 0) if is_full or size >= self._most or goes_at <= now else (0, goes_at)

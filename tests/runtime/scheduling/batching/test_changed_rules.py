"""Requests that wait while the batching rules change."""

from tests.runtime.scheduling.batching.bench import US, batcher, queued, ran, refused, submit

from argosy_runtime.scheduling.batching.dynamic import BatchingRules
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy


def test_what_waits_goes_on_under_other_rules():
    scheduler = batcher(delay_ns=1_000 * US)
    waiting = [queued() for _ in range(5)]
    submit(scheduler, *waiting)
    assert ran(scheduler.advance(0)) == []
    scheduler.scheduler.follow(BatchingRules(max_batch_size=8, delay_ns=10 * US))
    step = scheduler.advance(0)
    assert (ran(step), step.wake_at) == ([], 10 * US)
    scheduler.scheduler.follow(BatchingRules(max_batch_size=2))
    assert ran(scheduler.advance(0)) == [waiting[:2]]
    scheduler.scheduler.follow(BatchingRules(merge=False))
    scheduler.free.append(1)
    assert ran(scheduler.advance(0)) == [waiting[2:3]]


def test_what_waits_is_not_refused_by_a_shorter_queue_or_timeout():
    scheduler = batcher(delay_ns=1_000 * US)
    waiting = [queued() for _ in range(3)]
    submit(scheduler, *waiting)
    policy = QueuePolicy(max_size=2, timeout_ns=10)
    scheduler.scheduler.follow(BatchingRules(max_batch_size=8, policies=QueuePolicies(default=policy, by_level={})))
    refusal = scheduler.submit(queued())
    assert refusal is not None
    assert refusal.message.endswith("Exceeds maximum queue size")
    step = scheduler.advance(100)
    assert (ran(step), refused(step)) == ([waiting], [])


def test_what_waits_is_at_the_level_that_it_requested_under_other_levels():
    scheduler = batcher(merge=False)
    low, high = queued(priority=2), queued(priority=1)
    submit(scheduler, low, high)
    levels = QueuePolicies(default=QueuePolicy(), by_level={}, levels=2, default_level=2)
    scheduler.scheduler.follow(BatchingRules(merge=False, policies=levels))
    assert ran(scheduler.advance(0)) == [[high]]
    assert scheduler.cancel(low)
    assert scheduler.pending == 0


def test_a_timeout_that_has_begun_goes_on():
    policies = QueuePolicies(default=QueuePolicy(timeout_ns=50), by_level={})
    scheduler = batcher(delay_ns=1_000 * US, policies=policies)
    overdue = queued()
    submit(scheduler, overdue)
    scheduler.scheduler.follow(BatchingRules(max_batch_size=8, delay_ns=1_000 * US))
    assert refused(scheduler.advance(50)) == [overdue]

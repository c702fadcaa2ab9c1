"""Dynamic batching in virtual time: what makes a batch, and when it goes."""

import pytest
from tests.runtime.scheduling.batching.bench import US, Bench, batcher, policy, queued, ran, refused, submit
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelQueuePolicy

from argosy_runtime.scheduling.batching.dynamic import BatchingRules
from argosy_runtime.scheduling.queue_policy import QueuePolicy


def test_without_delay_all_that_waits_goes_at_once():
    scheduler = batcher()
    waiting = [queued() for _ in range(3)]
    submit(scheduler, *waiting)
    step = scheduler.advance(0)
    assert ran(step) == [waiting]
    assert [batch.instance for batch in step.batches] == [0]
    assert step.wake_at is None
    assert scheduler.pending == 0


def test_waits_for_the_delay_of_the_oldest_then_sends_all():
    scheduler = batcher(delay_ns=100 * US)
    first, second = queued(arrived=0), queued(arrived=40 * US)
    submit(scheduler, first)
    assert scheduler.advance(0).wake_at == 100 * US
    submit(scheduler, second)
    step = scheduler.advance(40 * US)
    assert (step.batches, step.wake_at) == ([], 100 * US)
    assert ran(scheduler.advance(100 * US)) == [[first, second]]


def test_a_full_batch_does_not_wait():
    scheduler = batcher(2, delay_ns=100 * US, max_batch_size=4)
    waiting = [queued(size=2), queued(size=2), queued()]
    submit(scheduler, *waiting)
    step = scheduler.advance(0)
    assert ran(step) == [waiting[:2]]
    assert step.wake_at == 100 * US


def test_a_preferred_size_goes_at_once_and_the_rest_waits():
    scheduler = batcher(2, delay_ns=100 * US, preferred=frozenset({2, 4}))
    waiting = [queued() for _ in range(3)]
    submit(scheduler, *waiting)
    step = scheduler.advance(0)
    assert ran(step) == [waiting[:2]]
    assert scheduler.pending == 1
    assert step.wake_at == 100 * US


@pytest.mark.parametrize(
    ("sizes", "preferred", "batches"),
    [
        ([1] * 7, {2, 4}, [4, 2, 1]),
        ([1] * 3, {4}, [3]),
        ([1] * 6, {4}, [4, 2]),
        ([3, 2, 1], {4}, [3, 3]),
        ([2, 1, 2], {2, 4}, [2, 3]),
        ([6, 1], {4}, [6, 1]),
        ([1, 3, 1], {1}, [1, 3, 1]),
    ],
)
def test_without_a_delay_the_largest_preferred_size_that_waits_goes_first(sizes, preferred, batches):
    scheduler = batcher(len(sizes), preferred=frozenset(preferred))
    submit(scheduler, *[queued(size=size) for size in sizes])
    assert [sum(one.size for one in batch) for batch in ran(scheduler.advance(0))] == batches


def test_a_preferred_size_goes_before_a_different_shape_closes_the_batch():
    scheduler = batcher(3, preferred=frozenset({2}))
    small = [queued(key=(("X", (1,), None),)) for _ in range(2)]
    wide = queued(key=(("X", (2,), None),))
    submit(scheduler, *small, wide)
    assert ran(scheduler.advance(0)) == [small, [wide]]


def test_nothing_leaves_while_the_scheduler_is_held():
    scheduler = Bench(2, BatchingRules(max_batch_size=8, policies=policy(timeout_ns=10)), hold=3)
    gone, *waiting = [queued() for _ in range(3)]
    submit(scheduler, gone, waiting[0])
    step = scheduler.advance(50)
    assert (ran(step), refused(step), step.wake_at) == ([], [], None), "no timeout strikes either"
    assert scheduler.cancel(gone)
    assert ran(scheduler.advance(50)) == []
    last = queued(arrived=50)
    submit(scheduler, last)
    step = scheduler.advance(55)
    assert (ran(step), refused(step)) == ([[last]], [waiting[0]]), "a cancelled one counts as well"
    submit(scheduler, waiting[1])
    assert refused(scheduler.advance(60)) == [waiting[1]], "it is held once"


def test_a_model_that_does_not_merge_is_not_held():
    scheduler = Bench(1, BatchingRules(merge=False), hold=3)
    waiting = queued()
    submit(scheduler, waiting)
    assert ran(scheduler.advance(0)) == [[waiting]]


def test_a_different_shape_closes_the_batch():
    scheduler = batcher(2, delay_ns=100 * US)
    small, wide = queued(key=(("X", (1,), None),)), queued(key=(("X", (2,), None),))
    submit(scheduler, small, wide)
    step = scheduler.advance(0)
    assert ran(step) == [[small]]
    assert step.wake_at == 100 * US


def test_no_free_instance_means_no_batch():
    scheduler = batcher(0)
    submit(scheduler, queued())
    step = scheduler.advance(0)
    assert (step.batches, step.wake_at) == ([], None)
    assert scheduler.pending == 1


def test_without_dynamic_batching_one_request_is_one_batch():
    scheduler = batcher(5, merge=False)
    waiting = [queued(size=3), queued(size=2)]
    submit(scheduler, *waiting)
    assert ran(scheduler.advance(0)) == [[waiting[0]], [waiting[1]]]


def test_rules_from_a_configuration():
    config = ModelConfig(max_batch_size=16)
    config.dynamic_batching.preferred_batch_size.extend([4, 8])
    config.dynamic_batching.max_queue_delay_microseconds = 7
    config.dynamic_batching.default_queue_policy.max_queue_size = 3
    config.dynamic_batching.default_queue_policy.timeout_action = ModelQueuePolicy.DELAY
    rules = BatchingRules.of(config)
    assert (rules.max_batch_size, rules.delay_ns, rules.target, rules.merge) == (16, 7_000, 8, True)
    assert rules.policies.default == QueuePolicy(max_size=3, delay_on_timeout=True)
    assert not BatchingRules.of(ModelConfig(max_batch_size=16)).merge


def test_the_longest_free_goes_first():
    scheduler = batcher(3, merge=False)
    scheduler.free = [7, 3, 5]
    submit(scheduler, queued(), queued())
    assert [batch.instance for batch in scheduler.advance(0).batches] == [7, 3]


def test_before_the_delay_is_over_several_are_no_more_than_the_largest_preferred_size():
    scheduler = batcher(instances=2, preferred=frozenset({4}), delay_ns=100)
    three, other = queued(size=3), queued(size=3)
    submit(scheduler, three, other)
    step = scheduler.advance(0)
    assert ran(step) == [[three]], "the other waits for one that fits it"
    assert step.wake_at == 100
    assert ran(scheduler.advance(100)) == [[other]]


def test_after_the_delay_several_are_no_more_than_the_largest_batch():
    scheduler = batcher(instances=2, preferred=frozenset({4}), delay_ns=100)
    waiting = [queued(size=3), queued(size=3), queued(size=2), queued()]
    submit(scheduler, *waiting)
    assert ran(scheduler.advance(100)) == [waiting[:3], waiting[3:]]


def test_without_a_delay_several_are_no_more_than_the_largest_preferred_size():
    scheduler = batcher(instances=2, preferred=frozenset({4}))
    three, other = queued(size=3), queued(size=3)
    submit(scheduler, three, other)
    assert ran(scheduler.advance(1000)) == [[three], [other]]


def test_one_that_is_larger_than_what_is_put_together_goes_alone():
    scheduler = batcher(instances=2, preferred=frozenset({2}), delay_ns=100)
    large, small = queued(size=8), queued()
    submit(scheduler, large, small)
    assert ran(scheduler.advance(0)) == [[large]]
    assert ran(scheduler.advance(100)) == [[small]]

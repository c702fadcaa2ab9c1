"""Dynamic batching in virtual time: every rule of the module's docstring, and that nothing is lost or reordered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelQueuePolicy

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy
from argosy_runtime.scheduling.queued_request import QueuedRequest
from argosy_runtime.scheduling.scheduler import Decision

US = 1_000


def queued(arrived: int = 0, size: int = 1, key=None, priority: int = 0, timeout_us: int = 0) -> QueuedRequest:
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
    return Bench(instances, BatchingRules(**{"max_batch_size": 8, **rules}))


def ran(step: Decision) -> list[list[QueuedRequest]]:
    return [batch.requests for batch in step.batches]


def refused(step: Decision) -> list[QueuedRequest]:
    return [refusal.queued for refusal in step.refused]


def submit(scheduler: Bench, *waiting: QueuedRequest) -> None:
    for one in waiting:
        assert scheduler.submit(one) is None


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


def test_higher_priority_first():
    policies = QueuePolicies(QueuePolicy(), {}, levels=2, default_level=2)
    scheduler = batcher(3, policies=policies, merge=False)
    low, high, default = queued(priority=2), queued(priority=1), queued(priority=0)
    submit(scheduler, low, high, default)
    assert ran(scheduler.advance(0)) == [[high], [low], [default]]
    assert default.priority == 2


def policy(**fields) -> QueuePolicies:
    return QueuePolicies(QueuePolicy(**fields), {})


def test_a_full_queue_refuses_with_tritons_words():
    scheduler = batcher(policies=policy(max_size=1))
    submit(scheduler, queued())
    error = scheduler.submit(queued())
    assert error is not None
    assert error.kind is ErrorKind.UNAVAILABLE
    assert error.message.endswith("Exceeds maximum queue size")
    assert scheduler.pending == 1


def test_reject_expires_even_while_every_instance_is_busy():
    scheduler = batcher(0, policies=policy(timeout_ns=50 * US))
    overdue, fresh = queued(arrived=0), queued(arrived=30 * US)
    submit(scheduler, overdue, fresh)
    assert scheduler.advance(0).wake_at == 50 * US
    step = scheduler.advance(50 * US)
    assert refused(step) == [overdue]
    assert step.wake_at == 80 * US


def test_delay_sends_the_overdue_behind_the_others():
    scheduler = batcher(2, policies=policy(timeout_ns=50 * US, delay_on_timeout=True), merge=False)
    overdue, fresh = queued(arrived=0), queued(arrived=30 * US)
    submit(scheduler, overdue, fresh)
    step = scheduler.advance(60 * US)
    assert refused(step) == []
    assert ran(step) == [[fresh], [overdue]]


@pytest.mark.parametrize(
    ("default", "desired", "expected"),
    [(100, 40, 40), (100, 400, 100), (0, 40, None), (100, 0, 100)],
    ids=["shorter", "longer is ignored", "no default, no override", "none wanted"],
)
def test_a_request_may_only_shorten_the_timeout(default, desired, expected):
    rule = QueuePolicy(timeout_ns=default * US, allow_override=True)
    deadline = rule.deadline(queued(timeout_us=desired))
    assert deadline == (None if expected is None else expected * US)


def test_cancelled_requests_leave_the_queue():
    scheduler = batcher(delay_ns=100 * US)
    gone, stays = queued(), queued()
    submit(scheduler, gone, stays)
    assert scheduler.cancel(gone)
    assert not scheduler.cancel(gone)
    assert ran(scheduler.advance(100 * US)) == [[stays]]


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


def test_queue_policies_without_dynamic_batching():
    config = ModelConfig(name="m", max_batch_size=8)
    config.parameters["queue_policies"].string_value = (
        '{"priority_levels": 2, "default_priority_level": 2, '
        '"default_queue_policy": {"max_queue_size": 2, "default_timeout_microseconds": 50}, '
        '"priority_queue_policy": {"1": {"max_queue_size": 1}}}'
    )
    rules = BatchingRules.of(config)
    assert not rules.merge
    scheduler = Bench(0, rules)
    overdue, low, high = queued(), queued(arrived=20 * US), queued(arrived=30 * US, priority=1)
    submit(scheduler, overdue, low, high)
    assert scheduler.submit(queued()) is not None
    assert scheduler.submit(queued(priority=1)) is not None
    assert refused(scheduler.advance(50 * US)) == [overdue]
    scheduler.free = [1, 2]
    assert ran(scheduler.advance(60 * US)) == [[high], [low]]


def test_a_model_without_a_batch_dimension_keeps_its_queue_policies():
    config = ModelConfig(max_batch_size=0)
    config.dynamic_batching.priority_levels = 2
    config.dynamic_batching.default_priority_level = 2
    config.dynamic_batching.default_queue_policy.max_queue_size = 3
    config.dynamic_batching.default_queue_policy.default_timeout_microseconds = 50
    config.dynamic_batching.max_queue_delay_microseconds = 100
    scheduler = Bench(0, BatchingRules.of(config))
    overdue, low, high = queued(), queued(arrived=20 * US), queued(arrived=30 * US, priority=1)
    submit(scheduler, overdue, low, high, queued(arrived=30 * US))
    assert scheduler.submit(queued(arrived=30 * US)) is not None
    assert scheduler.advance(30 * US).wake_at == 50 * US
    assert refused(scheduler.advance(50 * US)) == [overdue]
    scheduler.free = [1, 2]
    assert ran(scheduler.advance(60 * US)) == [[high], [low]], "one request each, at once"


def test_the_longest_free_goes_first():
    scheduler = batcher(3, merge=False)
    scheduler.free = [7, 3, 5]
    submit(scheduler, queued(), queued())
    assert [batch.instance for batch in scheduler.advance(0).batches] == [7, 3]


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 4), st.sampled_from("ab")), max_size=30),
    delay=st.integers(0, 60),
    preferred=st.frozensets(st.integers(1, 8), max_size=2),
    free=st.integers(1, 3),
)
def test_every_request_runs_once_in_order_within_its_delay(arrivals, delay, preferred, free):
    scheduler = batcher(free, delay_ns=delay, preferred=preferred)
    waiting = [queued(at, size, key=((key, (), None),)) for at, size, key in sorted(arrivals)]
    expected = list(waiting)
    gone: list[QueuedRequest] = []
    now = 0
    while waiting or scheduler.pending:
        while waiting and waiting[0].arrived <= now:
            submit(scheduler, waiting.pop(0))
        step = scheduler.advance(now)
        for batch in ran(step):
            assert sum(one.size for one in batch) <= 8
            assert len({one.key for one in batch}) == 1
            gone += batch
        scheduler.free += [batch.instance for batch in step.batches]
        if not step.batches and scheduler.pending:
            assert step.wake_at is not None
            assert step.wake_at > now
            assert step.wake_at <= oldest(expected, gone) + delay
        if not step.batches:
            now = next_event(waiting, step.wake_at)
    assert gone == expected


def oldest(expected: list[QueuedRequest], gone: list[QueuedRequest]) -> int:
    """Return the arrival of the oldest request that still waits."""
    return expected[len(gone)].arrived


def next_event(waiting: list[QueuedRequest], wake_at: int | None) -> int:
    times = [one.arrived for one in waiting[:1]] + ([wake_at] if wake_at is not None else [])
    return min(times, default=0)


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


@given(
    waiting=st.lists(st.tuples(st.integers(1, 5), st.sampled_from("ab"), st.integers(0, 20)), min_size=1, max_size=12),
    preferred=st.frozensets(st.integers(1, 8), max_size=3),
    delay=st.sampled_from([0, 10, 30]),
)
def test_batches_are_those_of_a_simple_model(waiting, preferred, delay):
    scheduler = batcher(len(waiting), preferred=preferred, delay_ns=delay)
    requests = [queued(at, size, key=((key, (), None),)) for size, key, at in waiting]
    submit(scheduler, *requests)
    now = 20
    step = scheduler.advance(now)
    expected = list(simple_batches(requests, preferred or {8}, delay, now))
    assert ran(step) == expected
    assert (step.wake_at is None) == (sum(map(len, expected)) == len(requests))


def simple_batches(waiting: list[QueuedRequest], preferred: set[int], delay: int, now: int):
    """Yield the batches that go now, by looking at every beginning of the queue."""
    while waiting:
        most = max(preferred)
        starts = [waiting[:count] for count in range(1, len(waiting) + 1)]
        limit = 8 if delay else most
        allowed = [start for start in starts if len({one.key for one in start}) == 1 and fits(start, limit)]
        longest = allowed[-1]
        overdue = delay and any(one.arrived + delay <= now for one in longest)
        favoured = [start for start in allowed if sum(one.size for one in start) in preferred]
        within = [start for start in allowed if fits(start, most)]
        closed = longest != waiting or sum(one.size for one in longest) >= most
        if favoured and not overdue:
            batch = favoured[-1]
        elif len(within) < len(allowed) and not overdue:
            batch = within[-1]
        elif closed or overdue or not delay:
            batch = longest
        else:
            return
        yield batch
        waiting = waiting[len(batch) :]


def fits(start: list[QueuedRequest], limit: int) -> bool:
    """Return whether requests can be a batch of `limit` rows; one alone always can."""
    return len(start) == 1 or sum(one.size for one in start) <= limit

"""Queues in virtual time: priorities, limits and timeouts, with dynamic batching and without."""

import pytest
from tests.runtime.scheduling.batching.bench import US, Bench, batcher, policy, queued, ran, refused, submit
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind
from argosy_runtime.scheduling.batching.dynamic import BatchingRules
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy


def test_higher_priority_first():
    policies = QueuePolicies(QueuePolicy(), {}, levels=2, default_level=2)
    scheduler = batcher(3, policies=policies, merge=False)
    low, high, default = queued(priority=2), queued(priority=1), queued(priority=0)
    submit(scheduler, low, high, default)
    assert ran(scheduler.advance(0)) == [[high], [low], [default]]
    assert default.priority == 2


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

"""The queue against its rules, said without any thought of speed; and how much work its operations are."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.properties import examples

from argosy_runtime.messages import InferRequest
from argosy_runtime.scheduling.queue import RequestQueue
from argosy_runtime.scheduling.queue_policy import QueuePolicies, QueuePolicy
from argosy_runtime.scheduling.queued_request import QueuedRequest

US = 1_000
POLICIES = st.builds(
    QueuePolicy,
    max_size=st.sampled_from([0, 2, 4]),
    timeout_ns=st.sampled_from([0, 10 * US, 50 * US]),
    allow_override=st.booleans(),
    delay_on_timeout=st.booleans(),
)


class QueueMachine(RuleBasedStateMachine):
    """Two levels; the model is a list of those in time and a list of those delayed, for each."""

    @initialize(first=POLICIES, second=POLICIES)
    def start(self, first: QueuePolicy, second: QueuePolicy) -> None:
        self.policies = {1: first, 2: second}
        self.queue = RequestQueue(QueuePolicies(second, {1: first}, levels=2, default_level=2))
        self.in_time: dict[int, list[QueuedRequest]] = {1: [], 2: []}
        self.delayed: dict[int, list[QueuedRequest]] = {1: [], 2: []}
        self.now = 0

    def _ordered(self) -> list[QueuedRequest]:
        return [queued for level in (1, 2) for queued in (*self.in_time[level], *self.delayed[level])]

    def _forget(self, queued: QueuedRequest) -> None:
        for waiting in (*self.in_time.values(), *self.delayed.values()):
            if queued in waiting:
                waiting.remove(queued)

    @rule(priority=st.integers(0, 3), timeout_us=st.sampled_from([0, 5, 20, 90]))
    def push(self, priority: int, timeout_us: int) -> None:
        queued = QueuedRequest(InferRequest("m", {}, priority=priority, timeout_us=timeout_us), self.now)
        level = 1 if priority == 1 else 2
        policy = self.policies[level]
        full = policy.max_size and len(self.in_time[level]) + len(self.delayed[level]) >= policy.max_size
        assert (self.queue.push(queued) is not None) == bool(full)
        if full:
            return
        shorter = policy.allow_override and 0 < timeout_us * US < policy.timeout_ns
        timeout = timeout_us * US if shorter else policy.timeout_ns
        assert queued.deadline == (self.now + timeout if timeout else None)
        self.in_time[level].append(queued)

    @rule(count=st.integers(0, 3))
    def take(self, count: int) -> None:
        expected = self._ordered()[:count]
        assert self.queue.take(count) == expected
        for queued in expected:
            self._forget(queued)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        waiting = self._ordered()
        if waiting:
            queued = data.draw(st.sampled_from(waiting))
            assert self.queue.remove(queued)
            assert not self.queue.remove(queued)
            self._forget(queued)

    @rule(ns=st.sampled_from([1 * US, 7 * US, 60 * US]))
    def pass_time(self, ns: int) -> None:
        self.now += ns
        expected: list[tuple[int, QueuedRequest]] = []
        for level, policy in self.policies.items():
            overdue = [
                (q.deadline, q) for q in self.in_time[level] if q.deadline is not None and q.deadline <= self.now
            ]
            overdue.sort(key=lambda one: (one[0], one[1].ticket))
            for _, queued in overdue:
                self._forget(queued)
            if policy.delay_on_timeout:
                self.delayed[level] += [queued for _, queued in overdue]
            else:
                expected += overdue
        expected.sort(key=lambda one: (one[0], one[1].ticket))
        assert self.queue.expire(self.now) == [queued for _, queued in expected]

    @invariant()
    def it_is_what_it_should_be(self) -> None:
        if not hasattr(self, "queue"):
            return
        waiting = self._ordered()
        assert list(self.queue.front()) == waiting
        assert len(self.queue) == len(waiting)
        deadlines = [q.deadline for level in self.in_time.values() for q in level if q.deadline is not None]
        assert self.queue.next_deadline == min(deadlines, default=None)


QueueMachine.TestCase.settings = examples(100, stateful_step_count=30)
TestQueue = QueueMachine.TestCase


def steps(do: Callable[[], object]) -> int:
    """Return how many instructions of Python `do` takes: 0 where what it runs is compiled."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        do()
    finally:
        sys.settrace(former)
    return count


def waiting(count: int, delay: bool = False) -> tuple[RequestQueue, list[QueuedRequest]]:
    """Return a queue of so many requests, one microsecond apart, each with a timeout of a second."""
    policy = QueuePolicy(timeout_ns=1_000_000 * US, delay_on_timeout=delay)
    queue = RequestQueue(QueuePolicies(policy, {}))
    requests = [QueuedRequest(InferRequest("m", {}), number * US) for number in range(count)]
    for queued in requests:
        assert queue.push(queued) is None
    return queue, requests


@pytest.mark.parametrize("delay", [False, True])
def test_one_timeout_is_as_much_work_in_a_long_queue(delay):
    work = []
    for count in (10, 10_000):
        queue, requests = waiting(count, delay)
        work.append(steps(lambda queue=queue: queue.expire(1_000_000 * US)))
        assert len(queue) == count if delay else count - 1
        assert queue.next_deadline == requests[1].deadline
    assert work[0] == work[1]


def test_one_cancellation_is_as_much_work_in_a_long_queue():
    work = []
    for count in (10, 10_000):
        queue, requests = waiting(count)
        work.append(steps(lambda queue=queue, last=requests[-1]: queue.remove(last)))
        assert len(queue) == count - 1
    assert work[0] == work[1]


def test_what_has_left_fills_no_memory():
    queue, requests = waiting(1)
    for _ in range(1_000):
        passing = QueuedRequest(InferRequest("m", {}), 0)
        queue.push(passing)
        queue.remove(passing)
    assert len(queue._deadlines) < 100
    assert queue.next_deadline == requests[0].deadline
    assert queue.take(1) == requests
    assert queue.next_deadline is None

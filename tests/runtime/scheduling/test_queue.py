"""The queue against its rules, said without any thought of speed."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

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
        expected = []
        for level, policy in self.policies.items():
            late = [q for q in self.in_time[level] if q.deadline is not None and q.deadline <= self.now]
            for queued in late:
                self._forget(queued)
            if policy.delay_on_timeout:
                self.delayed[level] += late
            else:
                expected += late
        assert self.queue.expire(self.now) == expected
        assert self.queue.next_deadline is None or self.queue.next_deadline > self.now

    @invariant()
    def it_is_what_it_should_be(self) -> None:
        if not hasattr(self, "queue"):
            return
        waiting = self._ordered()
        assert list(self.queue.front()) == waiting
        assert len(self.queue) == len(waiting)
        deadlines = [q.deadline for level in self.in_time.values() for q in level if q.deadline is not None]
        if deadlines:
            assert self.queue.next_deadline is not None
            assert self.queue.next_deadline <= min(deadlines), "nobody is told too late"


QueueMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
TestQueue = QueueMachine.TestCase

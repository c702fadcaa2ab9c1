"""Whatever clients, instances and the clock do: requests end once, in their sequence's order, at its instance."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties import examples
from tests.runtime.scheduling.sequences.bench import IDLE, US, config

from argosy_runtime.messages import InferRequest, InferResponse
from argosy_runtime.scheduling.queued_request import QueuedRequest
from argosy_runtime.scheduling.scheduler import Batch
from argosy_runtime.scheduling.sequences.scheduler import SequenceScheduler

STRATEGIES = [
    "direct {}",
    "direct { max_queue_delay_microseconds: 200 minimum_slot_utilization: 0.6 }",
    "oldest {}",
    "oldest { max_candidate_sequences: 2 max_queue_delay_microseconds: 200 preferred_batch_size: [ 2 ] }",
]
IDS = st.integers(1, 5)
KEYS = [None, (("IN", (2,), None),)]


class SequenceMachine(RuleBasedStateMachine):
    """A scheduler with some instances. `waiting`: accepted requests that have not run, in order of arrival.

    `sequences`: the sequence of each, as its id and how often that has begun.
    """

    @initialize(strategy=st.sampled_from(STRATEGIES), size=st.integers(0, 3), iterative=st.booleans())
    def start(self, strategy: str, size: int, iterative: bool) -> None:
        batching = strategy if size > 1 else strategy.replace("preferred_batch_size: [ 2 ]", "")
        more = "iterative_sequence: true" if iterative else ""
        self.direct = strategy.startswith("direct")
        self.scheduler = SequenceScheduler(config(batching, size, more), {})
        self.now = self.last_number = 0
        self.alive: set[int] = set()
        self.leaving: set[int] = set()
        self.running: dict[int, Batch] = {}
        self.waiting: dict[QueuedRequest, None] = {}
        self.ended: set[QueuedRequest] = set()
        self.begun: dict[int, int] = {}
        self.sequences: dict[QueuedRequest, tuple[int, int]] = {}
        self.locations: dict[tuple[int, int], tuple[int, int]] = {}
        self.grow()

    @rule()
    def grow(self) -> None:
        self.last_number += 1
        self.alive.add(self.last_number)
        self.scheduler.instance_added(self.last_number)
        self.advance()

    @rule(
        sequence=IDS,
        start=st.booleans(),
        end=st.booleans(),
        timeout=st.sampled_from([0, 300]),
        key=st.sampled_from(KEYS),
    )
    def submit(self, sequence: int, start: bool, end: bool, timeout: int, key: object) -> None:
        request = InferRequest(
            "m", {}, sequence_id=sequence, sequence_start=start, sequence_end=end, timeout_us=timeout
        )
        queued = QueuedRequest(request, self.now, 1, key)
        continues = self.scheduler.continues(InferRequest("m", {}, sequence_id=sequence))
        refusal = self.scheduler.submit(queued)
        assert (refusal is None) == (start or continues)
        if refusal is None:
            self.waiting[queued] = None
            if not continues:
                self.begun[sequence] = self.begun.get(sequence, 0) + 1
            self.sequences[queued] = (sequence, self.begun[sequence])
        self.advance()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        queued = data.draw(st.sampled_from([*self.waiting]))
        assert self.scheduler.cancel(queued)
        self.over(queued)
        assert not self.scheduler.cancel(queued)
        self.advance()

    @precondition(lambda self: self.running)
    @rule(data=st.data(), again=st.booleans())
    def finish(self, data: st.DataObject, again: bool) -> None:
        batch = self.running.pop(data.draw(st.sampled_from(sorted(self.running))))
        for queued in batch.requests:
            if again and self.scheduler.reschedule(queued, self.now) is None:
                self.ended.discard(queued)
                self.waiting[queued] = None
            else:
                self.scheduler.completed(queued, InferResponse(), self.now)
                self.over(queued)
        self.advance()

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.alive)))
        self.alive.discard(number)
        self.leaving.discard(number)
        batch = self.running.pop(number, None)
        self.scheduler.instance_lost(number)
        for queued in batch.requests if batch is not None else []:
            self.scheduler.completed(queued, InferResponse(), self.now)
            self.over(queued)
        self.advance()

    @precondition(lambda self: self.alive - self.leaving)
    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.alive - self.leaving)))
        self.leaving.add(number)
        self.scheduler.instance_retired(number)
        self.advance()

    @rule(ns=st.sampled_from([100 * US, 300 * US, IDLE]))
    def pass_time(self, ns: int) -> None:
        self.now += ns
        self.advance()

    @rule()
    def drain(self) -> None:
        taken = self.scheduler.drain()
        assert sorted(map(id, taken)) == sorted(map(id, self.waiting))
        for queued in taken:
            self.over(queued)
        self.advance()

    def over(self, queued: QueuedRequest) -> None:
        """End a request, once."""
        assert queued not in self.ended
        self.ended.add(queued)
        self.waiting.pop(queued, None)
        self.scheduler.request_over(queued, self.now)

    def advance(self) -> None:
        free = [number for number in sorted(self.alive) if number not in self.running]
        decision = self.scheduler.advance(self.now, free)
        assert decision.wake_at is None or decision.wake_at > self.now
        for batch in decision.batches:
            assert batch.instance in free
            free.remove(batch.instance)
            self.running[batch.instance] = batch
            self.check(batch)
            for queued in batch.requests:
                del self.waiting[queued]
        for refusal in decision.refused:
            self.over(refusal.queued)
        if decision.batches or decision.refused:
            self.advance()

    def check(self, batch: Batch) -> None:
        """Check that each request is the first of its sequence, that none has two, and that slots stay the same."""
        assert batch.slots is not None
        assert [one for one in batch.slots.requests if one is not None] == batch.requests
        assert len(batch.slots.messages) == len(batch.slots.requests)
        sequences = [self.sequences[queued] for queued in batch.requests]
        assert len(set(sequences)) == len(sequences)
        assert len({one.key for one in batch.requests}) == 1
        for position, queued in enumerate(batch.slots.requests):
            if queued is None:
                continue
            sequence = self.sequences[queued]
            assert next(one for one in self.waiting if self.sequences[one] == sequence) is queued
            location = (batch.instance, position if self.direct else 0)
            assert self.locations.setdefault(sequence, location) == location

    @invariant()
    def pending_counts_every_request(self) -> None:
        assert not hasattr(self, "waiting") or self.scheduler.pending == len(self.waiting)

    def teardown(self) -> None:
        """Let everything run to its end: nothing stays."""
        if not hasattr(self, "waiting"):
            return
        if not self.alive - self.leaving:
            self.grow()
        for _ in range(300):
            for number in sorted(self.running):
                for queued in self.running.pop(number).requests:
                    self.scheduler.completed(queued, InferResponse(), self.now)
                    self.over(queued)
            self.now += IDLE
            self.advance()
            if not self.waiting and not self.running:
                break
        self.now += IDLE
        self.advance()
        assert not self.waiting
        assert self.scheduler.sequences == 0
        assert all(self.scheduler.may_retire(number) for number in self.leaving)


TestSequences = SequenceMachine.TestCase
TestSequences.settings = examples(30, stateful_step_count=25)

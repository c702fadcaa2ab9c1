"""The slots of one instance, and the strategies by which their requests become batches."""

from abc import ABC, abstractmethod

from argosy_runtime.scheduling.batching.dynamic import BatchingRules, DynamicBatcher
from argosy_runtime.scheduling.queued_request import QueuedRequest

from .rules import SequenceRules
from .sequence import Sequence, Step


class SlotsOfInstance(ABC):
    """The slots of the instance with this number. `sequences` by position, None where one is free."""

    def __init__(self, number: int, rules: SequenceRules) -> None:
        self.number = number
        self.rules = rules
        self.leaving = False
        self.sequences: list[Sequence | None] = [None] * rules.slots
        self.wake_at: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no sequence has a slot here."""
        return all(sequence is None for sequence in self.sequences)

    @property
    def waiting(self) -> int:
        """Number of requests that wait in slots."""
        return sum([len(sequence.waiting) for sequence in self.sequences if sequence is not None])

    @abstractmethod
    def ready(self, sequence: Sequence) -> None:
        """Note that a sequence here has a waiting request and none that runs."""

    @abstractmethod
    def remove(self, queued: QueuedRequest) -> bool:
        """Remove a request that is about to run. Return False if it is not one."""

    @abstractmethod
    def next_batch(self, now: int) -> list[Step | None]:
        """Take the next batch, by position; nothing where waiting is better, at most until `wake_at`."""


class DirectSlots(SlotsOfInstance):
    """`direct`: a batch has the next request of each sequence, at the position of its slot.

    None stands at the positions of slots without one, and of requests whose shapes differ from the first one's.
    """

    def ready(self, sequence: Sequence) -> None:
        """Do nothing: every batch looks at all slots."""

    def remove(self, queued: QueuedRequest) -> bool:
        return False

    def next_batch(self, now: int) -> list[Step | None]:
        self.wake_at = None
        ready = last = 0
        oldest = now
        first: Step | None = None
        for position, sequence in enumerate(self.sequences):
            if sequence is not None and sequence.waiting and sequence.running is None:
                step = sequence.waiting[0]
                first = first or step
                ready += 1
                last = position + 1
                oldest = min(oldest, step.queued.arrived)
        if first is None or self._waits(ready, oldest, now):
            return []
        return [self._step(position, first) for position in range(last)]

    def _waits(self, ready: int, oldest: int, now: int) -> bool:
        """Return whether so few ready requests wait for others, until `wake_at`."""
        rules = self.rules
        if not rules.delay_ns or not rules.utilization or ready / rules.max_batch_size >= rules.utilization:
            return False
        if now - oldest >= rules.delay_ns:
            return False
        self.wake_at = oldest + rules.delay_ns
        return True

    def _step(self, position: int, first: Step) -> Step | None:
        """Take the next request of a slot, if it can share the batch."""
        sequence = self.sequences[position]
        if sequence is None or not sequence.waiting or sequence.running is not None:
            return None
        if sequence.waiting[0].queued.key != first.queued.key:
            return None
        step = sequence.waiting.popleft()
        sequence.running = step
        return step


class OldestSlots(SlotsOfInstance):
    """`oldest`: the instance's own dynamic batching of the first request of each sequence."""

    def __init__(self, number: int, rules: SequenceRules) -> None:
        super().__init__(number, rules)
        self._steps: dict[QueuedRequest, Step] = {}
        self._batcher = DynamicBatcher(
            BatchingRules(max_batch_size=rules.max_batch_size, delay_ns=rules.delay_ns, preferred=rules.preferred),
            rules.hold,
        )

    def ready(self, sequence: Sequence) -> None:
        step = sequence.waiting.popleft()
        sequence.running = step
        self._steps[step.queued] = step
        # An unbounded queue refuses nothing.
        self._batcher.submit(step.queued)

    def remove(self, queued: QueuedRequest) -> bool:
        return self._steps.pop(queued, None) is not None and self._batcher.cancel(queued)

    def next_batch(self, now: int) -> list[Step | None]:
        decision = self._batcher.advance(now, [self.number])
        self.wake_at = decision.wake_at
        batch: list[Step | None] = []
        for taken in decision.batches:
            batch += [self._steps.pop(queued) for queued in taken.requests]
        return batch

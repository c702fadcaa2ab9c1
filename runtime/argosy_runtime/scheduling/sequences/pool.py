"""The slots of all instances, and the sequences that wait for one."""

from heapq import heappop, heappush

from .instance import DirectSlots, OldestSlots, SlotsOfInstance
from .rules import SequenceRules
from .sequence import Sequence


class SlotPool:
    """Slots by instance. The lowest free position goes first, whatever its instance, as in Triton.

    `count`: sequences that have a slot or wait for one in the `backlog`.
    """

    def __init__(self, rules: SequenceRules) -> None:
        self._rules = rules
        self._instances: dict[int, SlotsOfInstance] = {}
        self._free: list[tuple[int, int]] = []
        self.backlog: dict[Sequence, None] = {}
        self.count = 0

    def of(self, number: int) -> SlotsOfInstance | None:
        """Return the slots of an instance, None if it has none any more."""
        return self._instances.get(number)

    @property
    def waiting(self) -> int:
        """Number of requests that wait in slots."""
        return sum([slots.waiting for slots in self._instances.values()])

    @property
    def waiting_in_backlog(self) -> int:
        """Number of requests that wait in the backlog."""
        return sum([len(sequence.waiting) for sequence in self.backlog])

    def add(self, number: int) -> None:
        """Add the slots of an instance."""
        rules = self._rules
        self._instances[number] = OldestSlots(number, rules) if rules.oldest else DirectSlots(number, rules)
        for position in range(self._rules.slots):
            heappush(self._free, (position, number))
        self._promote()

    def retire(self, number: int) -> None:
        """Begin no further sequence on an instance, and remove it once it has none."""
        slots = self._instances.get(number)
        if slots is not None:
            slots.leaving = True
            if slots.is_empty:
                del self._instances[number]

    def lose(self, number: int) -> SlotsOfInstance | None:
        """Remove an instance with its sequences. Return it, None if it is not there."""
        slots = self._instances.pop(number, None)
        if slots is not None:
            for sequence in slots.sequences:
                if sequence is not None:
                    sequence.instance = 0
                    self.count -= 1
        return slots

    def enter(self, sequence: Sequence) -> None:
        """Give a slot to a sequence, or queue it in the backlog."""
        self.backlog[sequence] = None
        self.count += 1
        self._promote()

    def ready(self, sequence: Sequence) -> None:
        """Let the next request of a sequence run that has a slot, and no request that runs."""
        slots = self._instances.get(sequence.instance)
        if slots is not None and sequence.running is None and sequence.waiting:
            slots.ready(sequence)

    def leave(self, sequence: Sequence) -> None:
        """Free the slot of a sequence, or its place in the backlog. Do nothing if it has none any more."""
        if sequence in self.backlog:
            del self.backlog[sequence]
            self.count -= 1
            return
        slots = self._instances.get(sequence.instance)
        if slots is None or slots.sequences[sequence.position] is not sequence:
            return
        slots.sequences[sequence.position] = None
        self.count -= 1
        if not slots.leaving:
            heappush(self._free, (sequence.position, slots.number))
            self._promote()
        elif slots.is_empty:
            del self._instances[slots.number]

    def _promote(self) -> None:
        """Give free slots to the first sequences of the backlog."""
        while self.backlog and self._free:
            position, number = heappop(self._free)
            slots = self._instances.get(number)
            if slots is None or slots.leaving:
                continue
            sequence = next(iter(self.backlog))
            del self.backlog[sequence]
            sequence.expires = 0
            sequence.instance, sequence.position = number, position
            slots.sequences[position] = sequence
            self.ready(sequence)

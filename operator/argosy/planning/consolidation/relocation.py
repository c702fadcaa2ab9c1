"""Relocation: the replicas of one server find places on others, where smaller ones give way at need."""

from collections.abc import Iterable, Iterator
from itertools import combinations

from argosy.planning.consolidation.fleet import RunningFleet
from argosy.planning.packing.layout import Assignment
from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.rules import allows_node
from argosy.planning.packing.search.slots import Preference, find_slot

DEPTH = 2
"""How many replicas give way one after another for one that moves."""
_LOOKED_AT = 160
"""GPUs on which replicas may give way: those with the most free memory."""
_TRIED = 12
"""Ways to make room that are tried for one replica, the fewest bytes first."""
_TIGHT = Preference()


class Relocation:
    """Moves items of a fleet in place, within a number of bytes and of steps. What it did can be taken back."""

    def __init__(self, fleet: RunningFleet, most_bytes: int, steps: int, *, may_open: bool = False) -> None:
        self._fleet, self._state = fleet, fleet.state
        self._left, self._steps, self._may_open = most_bytes, steps, may_open
        self._journal: list[tuple[bool, Item, Assignment]] = []
        self._closed: list[int] = []

    def empty(self, server: str) -> bool:
        """Move all items of a server to others. Where that is not possible, leave all as it was."""
        items = [self._state.items[number] for number in self._fleet.items[server]]
        items.sort(key=lambda item: (-len(item.needs), -item.exclusive, -self._fleet.bytes_of(item), item.number))
        for item in items:
            self._take(item)
        self._close(self._away(server))
        done = self._left >= 0 and all(self._relocate(item, DEPTH) for item in items)
        self._reopen(0)
        if not done:
            self.take_back()
        return done

    @property
    def moved(self) -> dict[int, Assignment]:
        """The items that are elsewhere than before, by number, with their former places."""
        before: dict[int, Assignment] = {}
        for placed, item, slots in self._journal:
            if not placed:
                before.setdefault(item.number, slots)
        return {number: slots for number, slots in before.items() if self._state.slots[number] != slots}

    def take_back(self, mark: int = 0) -> None:
        """Take back what was done since there were `mark` entries in the journal."""
        while len(self._journal) > mark:
            placed, item, slots = self._journal.pop()
            if placed:
                self._state.take(item)
            else:
                self._left += self._fleet.bytes_of(item)
                self._state.put(item, slots)

    def _take(self, item: Item) -> None:
        slots = self._state.slots[item.number]
        self._state.take(item)
        self._left -= self._fleet.bytes_of(item)
        self._journal.append((False, item, slots))

    def _put(self, item: Item, slots: Assignment) -> None:
        self._state.put(item, slots)
        self._journal.append((True, item, slots))

    def _relocate(self, item: Item, depth: int) -> bool:
        self._steps -= 1
        if self._steps < 0:
            return False
        slots = find_slot(self._state, item, _TIGHT, may_open=self._may_open)
        if slots is not None:
            self._put(item, slots)
            return True
        if not depth or len(item.needs) > 1 or item.exclusive:
            return False
        return any(self._instead(item, gpu, victims, depth) for gpu, victims in self._ways(item))

    def _instead(self, item: Item, gpu: int, victims: tuple[Item, ...], depth: int) -> bool:
        """Place an item on a GPU that others leave; all as before where that is not possible."""
        mark, closed = len(self._journal), len(self._closed)
        for victim in victims:
            self._take(victim)
        done = False
        if self._state.takes(gpu, item.needs[0]) and self._fits(item, gpu):
            self._put(item, ((gpu,),))
            self._close((gpu,))
            done = all(self._relocate(victim, depth - 1) for victim in victims)
            self._reopen(closed)
        if not done:
            self.take_back(mark)
        return done

    def _fits(self, item: Item, gpu: int) -> bool:
        slots = find_slot(self._state, item, _TIGHT, may_open=False)
        return slots is not None and slots == ((gpu,),)

    def _ways(self, item: Item) -> Iterator[tuple[int, tuple[Item, ...]]]:
        """Yield GPUs with the items that would leave them for one: the fewest bytes first."""
        ways = [way for gpu in self._looked_at(item) for way in self._victims(item, gpu)]
        ways.sort(key=lambda way: way[:2])
        for size, gpu, victims in ways[:_TRIED]:
            if size > self._left:
                return
            yield gpu, victims

    def _looked_at(self, item: Item) -> Iterable[int]:
        state = self._state
        for _, gpu in state.open[: -_LOOKED_AT - 1 : -1]:
            if not state.sealed[gpu] and allows_node(state, item, state.devices.node[gpu]):
                yield gpu

    def _victims(self, item: Item, gpu: int) -> Iterator[tuple[int, int, tuple[Item, ...]]]:
        """Yield one or two smaller items of a GPU without which an item has enough of it, with their bytes."""
        state, need = self._state, item.needs[0]
        lacks_memory, lacks_compute = need.settled - state.free[gpu], need.compute - state.compute[gpu]
        here = [other for number in state.on[gpu] if self._may_leave(other := state.items[number], item)]
        for count in (1, 2):
            for victims in combinations(here, count):
                enough = (
                    sum(v.memory for v in victims) >= lacks_memory and sum(v.compute for v in victims) >= lacks_compute
                )
                if enough:
                    yield sum(self._fleet.bytes_of(v) for v in victims), gpu, victims

    def _may_leave(self, other: Item, item: Item) -> bool:
        simple = len(other.needs) == 1 and not other.exclusive and other.number not in self._fleet.fixed
        return simple and other.group != item.group and self._fleet.bytes_of(other) < self._fleet.bytes_of(item)

    def _away(self, server: str) -> Iterator[int]:
        """Yield the GPUs that nothing goes to: those of the server, and those that are free on its node, so that more
        come free there.
        """
        state, gpus = self._state, self._fleet.gpus[server]
        yield from gpus
        yield from (gpu for gpu in state.devices.of_node(state.devices.node[gpus[0]]) if gpu in self._fleet.free)

    def _close(self, gpus: Iterable[int]) -> None:
        """Let nothing be placed on these GPUs."""
        for gpu in gpus:
            if not self._state.sealed[gpu]:
                self._state.sealed[gpu] = True
                self._closed.append(gpu)

    def _reopen(self, mark: int) -> None:
        while len(self._closed) > mark:
            self._state.sealed[self._closed.pop()] = False

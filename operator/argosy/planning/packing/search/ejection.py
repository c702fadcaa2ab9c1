"""Fewer GPUs by ejection: a GPU is emptied, and what has no place then takes that of others, which look for one next.

It finds plans that taking out what is on a few GPUs does not reach, since items without a place may wait meanwhile.
Items that were hard to place cost more to eject (Nagata and Bräysy, 2009). Steps are counted, and the numbers come from
a fixed seed, so that the same facts give the same plan.
"""

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import combinations
from random import Random
from typing import NamedTuple

from argosy.planning.packing.layout import Assignment
from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.objective import Bound
from argosy.planning.packing.search.rules import allows_node
from argosy.planning.packing.search.slots import Fit, Preference, find_slot
from argosy.planning.packing.search.state import State
from argosy.planning.packing.search.together import find_slots_of_node

_SEED = 1
_MOST_ITEMS = 200
"""Items above which nothing is ejected: there the other searches are near the bound."""
_STEPS = 80
"""Items that are placed until a GPU counts as needed."""
_EFFORT = 20_000
"""Items that are placed in all, divided by the items there are: a step takes longer among more."""
_COUNTS = ((1, 2), (3,))
"""How many items a step ejects: one or two, and three only where that is not enough."""
_NODES, _OF_NODE = 8, 12
"""Nodes that a step looks at, and items of each."""
_TRIED = 12
"""Sets of items that are tried on a node, the cheapest first."""
_MOVED = 6
"""Items that move to another node after a step, so that the next one finds other gaps."""
_FITS = (Fit.TOTAL, Fit.EVEN, Fit.MEMORY)


class _Ejecting(NamedTuple):
    """A place that an item gets once `numbers` are ejected."""

    numbers: tuple[int, ...]
    slots: Assignment


class Ejection:
    """Empties GPUs of a state in place; ask for it with `search`. The state has a place for every item."""

    def __init__(self, state: State, bound: Bound) -> None:
        self._state, self._bound, self._random = state, bound, Random(_SEED)
        self._most = state.used
        self._failures = [1] * len(state.items)
        self._steps = min(_EFFORT // len(state.items), len(state.items) ** 2)

    def search(self) -> None:
        """Empty one GPU after another, down to the bound, or until one is needed."""
        if len(self._state.items) > _MOST_ITEMS:
            return
        needed = 0
        while self._steps > 0 and not self._bound.is_near(self._state.used):
            gpus = self._emptiest()
            if not gpus:
                return
            slots = dict(self._state.slots)
            if not self._empty(gpus[needed % len(gpus)]):
                self._restore(slots)
                needed += 1

    def _emptiest(self) -> list[int]:
        """Return the GPUs that items share, the emptiest first."""
        state = self._state
        gpus = [gpu for _, gpu in state.open if not state.anchored[gpu]]
        return sorted(gpus, key=lambda gpu: (-state.free[gpu] / state.devices.memory[gpu], gpu))

    def _empty(self, gpu: int) -> bool:
        """Take out what is on a GPU, and return whether all has a place with one GPU less."""
        state = self._state
        waiting = [state.items[number] for number in sorted(set(state.on[gpu]))]
        self._most = state.used - 1
        for item in waiting:
            state.take(item)
        for _ in range(min(_STEPS, self._steps)):
            if not waiting:
                return True
            self._steps -= 1
            item = waiting.pop()
            ejected = self._put(item)
            waiting = [item, *waiting] if ejected is None else waiting + ejected
        return not waiting

    def _put(self, item: Item) -> list[Item] | None:
        """Place an item. Return what was ejected for it; None where it found no place."""
        state, random = self._state, self._random
        slots = find_slot(state, item, Preference(random.choice(_FITS)), may_open=state.used < self._most)
        if slots is not None:
            state.put(item, slots)
            if state.used <= self._most:
                return []
            state.take(item)
        self._failures[item.number] += 1
        best = self._cheapest(item)
        if best is None:
            self._move()
            return None
        ejected = [state.items[number] for number in best.numbers]
        for one in ejected:
            state.take(one)
        state.put(item, best.slots)
        self._move()
        random.shuffle(ejected)
        return ejected

    def _nodes(self) -> list[int]:
        return sorted({self._state.devices.node[gpus[0]] for slots in self._state.slots.values() for gpus in slots})

    def _cheapest(self, item: Item) -> _Ejecting | None:
        """Return the items to eject, on one of a few nodes, that were placed most easily before."""
        nodes = self._nodes()
        some = self._random.sample(nodes, min(len(nodes), _NODES))
        able = [node for node in some if allows_node(self._state, item, node)]
        for counts in _COUNTS:
            sets = [one for node in able for one in self._sets(item, node, counts)]
            for _, _, node, numbers in nsmallest(_TRIED, sets):
                slots = self._slots_without(item, node, numbers)
                if slots is not None:
                    return _Ejecting(numbers, slots)
        return None

    def _sets(self, item: Item, node: int, counts: Sequence[int]) -> Iterator[tuple[int, float, int, tuple[int, ...]]]:
        """Yield items of a node that free enough memory for another one, with how hard they were to place."""
        state, random, failures = self._state, self._random, self._failures
        here = sorted({number for gpu in state.devices.of_node(node) for number in state.on[gpu]})
        here = sorted(random.sample(here, min(len(here), _OF_NODE)))
        lacking = item.memory - state.node_free[node] if not state.nodes.counts[node] else 0
        rows = [(number, failures[number], state.items[number].memory) for number in here]
        for count in counts:
            for rows_of in combinations(rows, count):
                if lacking <= 0 or sum(row[2] for row in rows_of) >= lacking:
                    yield sum(row[1] for row in rows_of), random.random(), node, tuple(row[0] for row in rows_of)

    def _slots_without(self, item: Item, node: int, numbers: Sequence[int]) -> Assignment | None:
        """Return GPUs of a node for an item while others of the node are away."""
        before = [(self._state.items[number], self._state.slots[number]) for number in numbers]
        for one, _ in before:
            self._state.take(one)
        slots = self._slots_on(item, node)
        for one, of_one in before:
            self._state.put(one, of_one)
        return slots

    def _slots_on(self, item: Item, node: int) -> Assignment | None:
        if not allows_node(self._state, item, node):
            return None
        return find_slots_of_node(self._state, item, node, max(0, self._most - self._state.used))

    def _move(self) -> None:
        """Move a few items, each to a node where there is room for it."""
        state, random, nodes = self._state, self._random, self._nodes()
        if not nodes:
            return
        for number in random.choices(sorted(state.slots), k=_MOVED):
            item, before = state.items[number], state.slots[number]
            state.take(item)
            state.put(item, self._slots_on(item, random.choice(nodes)) or before)

    def _restore(self, slots: dict[int, Assignment]) -> None:
        """Give every item the place that it had."""
        state = self._state
        for number in [number for number, now in state.slots.items() if slots.get(number) != now]:
            state.take(state.items[number])
        for number in sorted(slots.keys() - state.slots.keys()):
            state.put(state.items[number], slots[number])

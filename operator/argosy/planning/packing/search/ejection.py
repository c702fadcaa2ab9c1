"""Fewer GPUs by ejection: a GPU is emptied, and what has no place then takes that of others, which look for one next.

It finds plans that taking out what is on a few GPUs does not reach, since items without a place may wait meanwhile.
Items that were hard to place cost more to eject (Nagata and Bräysy, 2009). Steps are counted, and the numbers come from
a fixed seed, so that the same facts give the same plan.
"""

from collections.abc import Sequence
from heapq import nsmallest
from random import Random

from argosy.planning.packing.layout import Assignment
from argosy.planning.packing.search.freeing import Ejectable, Freeing
from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.objective import Bound
from argosy.planning.packing.search.rules import allows_node, allows_one
from argosy.planning.packing.search.slots import Fit, Preference, find_slot
from argosy.planning.packing.search.state import State
from argosy.planning.packing.search.together import find_slots_of_node

_SEED = 1
_MOST_ITEMS = 200
"""Items above which nothing is ejected: there the other searches are near the bound."""
_STEPS = 80
"""Items that are placed until a GPU counts as needed."""
_EFFORT = 80_000
"""Models that are placed in all, divided by the models there are: a step takes longer among more."""
_STEPS_OF_FEW = 4
"""The most steps for each pair of items: few items have few orders."""
_SHORT = 4
"""Where something has no place, so many times fewer steps are taken: mostly there is none."""
_COUNTS = ((1, 2), (3,))
"""How many items a step ejects: one or two, and three only where that is not enough."""
_NODES = 8
"""Nodes that a step looks at for what has several GPUs."""
_TRIED = 12
"""Sets of items that are tried, the cheapest first."""
_MOVED = 2
"""Items that move to another node after a step, so that the next one finds other gaps."""
_FITS = (Fit.TOTAL, Fit.EVEN, Fit.MEMORY)


class Ejection:
    """Empties GPUs of a state in place; ask for it with `search`. The state has a place for every item."""

    def __init__(self, state: State, bound: Bound) -> None:
        self._state, self._bound, self._random = state, bound, Random(_SEED)
        self._most = state.used
        self._failures = [1] * len(state.items)
        self._ejectable = Ejectable(state, self._failures, self._random)
        models = sum(len(item.needs) for item in state.items)
        self._steps = min(_EFFORT // models, _STEPS_OF_FEW * len(state.items) ** 2)

    def search(self) -> None:
        """Empty one GPU after another, down to the bound, or until one is needed."""
        if len(self._state.items) > _MOST_ITEMS:
            return
        needed = 0
        while self._steps > 0 and not self._bound.is_near(self._state.used):
            gpus = self._emptiest()
            if not gpus:
                return
            if not self._empty(gpus[needed % len(gpus)]):
                needed += 1

    def put_missing(self, missing: Sequence[Item]) -> list[Item]:
        """Place what has no place, the highest rank first, where all that has one keeps one. Return what has none."""
        if len(self._state.items) > _MOST_ITEMS:
            return list(missing)
        self._most, failed = len(self._state.free), set[object]()
        self._steps //= _SHORT
        for item in sorted(missing, key=lambda one: one.rank):
            if item.shape not in failed and not self._settles([item], dict(self._state.slots)):
                failed.add(item.shape)
        return [item for item in missing if item.number not in self._state.slots]

    def _emptiest(self) -> list[int]:
        """Return the GPUs that items share, the emptiest first."""
        state = self._state
        gpus = [gpu for _, gpu in state.open if not state.anchored[gpu]]
        return sorted(gpus, key=lambda gpu: (-state.free[gpu] / state.devices.memory[gpu], gpu))

    def _empty(self, gpu: int) -> bool:
        """Take out what is on a GPU if all has a place with one GPU less, and return whether it has."""
        state, slots = self._state, dict(self._state.slots)
        waiting = [state.items[number] for number in sorted(set(state.on[gpu]))]
        self._most = state.used - 1
        for item in waiting:
            state.take(item)
        return self._settles(waiting, slots)

    def _settles(self, waiting: list[Item], before: dict[int, Assignment]) -> bool:
        """Return whether all that waits, and what is ejected for it, gets a place. If not, `before` is restored."""
        for _ in range(min(_STEPS, self._steps)):
            if not waiting:
                return True
            self._steps -= 1
            item = waiting.pop()
            ejected = self._put(item)
            waiting = [item, *waiting] if ejected is None else waiting + ejected
        if waiting:
            self._restore(before)
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
        ejected = self._put_by_ejection(item)
        self._move()
        random.shuffle(ejected or [])
        return ejected

    def _nodes(self) -> list[int]:
        return sorted({self._state.devices.node[gpus[0]] for slots in self._state.slots.values() for gpus in slots})

    def _put_by_ejection(self, item: Item) -> list[Item] | None:
        """Place an item where those are ejected that were placed most easily before. Return them; None without any."""
        state, nodes, may_open = self._state, self._nodes(), self._most - self._state.used
        if not item.shares_gpu:
            nodes = self._random.sample(nodes, min(len(nodes), _NODES))
        able = [node for node in nodes if allows_node(state, item, node)]
        for counts in _COUNTS:
            sets = (one for node in able for one in self._ejectable.sets(item, node, counts, may_open))
            for freeing in nsmallest(_TRIED, sets):
                ejected = [state.items[number] for number in freeing.numbers]
                if self._replaces(item, ejected, freeing):
                    return ejected
        return None

    def _replaces(self, item: Item, ejected: Sequence[Item], freeing: Freeing) -> bool:
        """Put an item in the place of others, and return whether it fits there; if not, they stay."""
        state = self._state
        before = [(one, state.slots[one.number]) for one in ejected]
        for one in ejected:
            state.take(one)
        slots = self._slots_among(item, freeing.node, freeing.gpus)
        if slots is not None:
            state.put(item, slots)
            return True
        for one, of_one in before:
            state.put(one, of_one)
        return False

    def _slots_among(self, item: Item, node: int, gpus: Sequence[int]) -> Assignment | None:
        """Return GPUs among those of a node for an item."""
        state, may_open = self._state, self._most - self._state.used
        if not allows_node(state, item, node):
            return None
        if not item.shares_gpu:
            return find_slots_of_node(state, item, node, max(0, may_open))
        able = (gpu for gpu in gpus if (may_open > 0 or not state.is_empty(gpu)) and state.takes(gpu, item.needs[0]))
        return next((((gpu,),) for gpu in able if allows_one(state, item, gpu)), None)

    def _move(self) -> None:
        """Move a few items, each to a node where there is room for it."""
        state, random, nodes = self._state, self._random, self._nodes()
        if not nodes:
            return
        for number in random.choices(sorted(state.slots), k=_MOVED):
            item, node = state.items[number], random.choice(nodes)
            gpus = self._roomy(item, node)
            if gpus:
                before = state.slots[number]
                state.take(item)
                state.put(item, self._slots_among(item, node, gpus) or before)

    def _roomy(self, item: Item, node: int) -> Sequence[int]:
        """Return the GPUs of a node to which an item may move by volume."""
        state, here = self._state, self._state.slots[item.number][0][0]
        gpus = state.devices.of_node(node)
        if item.shares_gpu:
            return [gpu for gpu in gpus if gpu != here and state.on[gpu] and state.takes(gpu, item.needs[0])]
        return gpus if here in gpus or item.exclusive or item.memory <= state.node_free[node] else ()

    def _restore(self, slots: dict[int, Assignment]) -> None:
        """Give every item the place that it had."""
        state = self._state
        for number in [number for number, now in state.slots.items() if slots.get(number) != now]:
            state.take(state.items[number])
        for number in sorted(slots.keys() - state.slots.keys()):
            state.put(state.items[number], slots[number])

"""Starts that fill one GPU after the other, by the dot product of what it has left and what a model needs."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from enum import Enum

from argosy.planning.packing.capacity import FULL_COMPUTE
from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.rules import allows_one, within_limits
from argosy.planning.packing.search.slots import Opening, Preference, find_slot
from argosy.planning.packing.search.starts.greedy import Start, constrained_first, dominant, fill
from argosy.planning.packing.search.state import State

_CLASSES = 64
"""Amounts of compute that are told apart: with more of them, similar ones are taken together."""
_TRIED = 4
"""Models of a class that are tried on a GPU, the largest that it has memory for first."""
_LARGE = Preference(opening=Opening.LARGE)
_Class = tuple[frozenset[int] | None, int]


class Match(Enum):
    """How a model is matched with what a GPU has left: by what all models need, by distance, or by balance."""

    WEIGHED = "Weighed"
    NEAREST = "Nearest"
    BALANCED = "Balanced"


class DotProduct:
    """Fills a state; ask for it with `fill`. `rows`: memory and number of the items that are left, by class."""

    def __init__(self, state: State, match: Match) -> None:
        self._state, self._match = state, match
        self._rows: dict[_Class, list[tuple[int, int]]] = {}
        self._memory = self._compute = 0.0

    def fill(self, items: Sequence[Item]) -> list[Item]:
        """Place the items. Return those that fit nowhere."""
        capacity = self._state.devices.largest
        first = [item for item in items if len(item.needs) > 1 or item.exclusive]
        missing = fill(self._state, first, Start(constrained_first(dominant, capacity), _LARGE))
        self._sort([item for item in items if len(item.needs) == 1 and not item.exclusive])
        for _, gpu in tuple(self._state.open):
            self._fill_gpu(gpu)
        while self._rows:
            missing += self._open_next()
        return missing

    def _sort(self, items: Sequence[Item]) -> None:
        step = 1 if len({item.compute for item in items}) <= _CLASSES else FULL_COMPUTE // _CLASSES
        for item in items:
            insort(self._rows.setdefault((item.nodes, item.compute // step), []), (item.memory, item.number))
            self._memory += item.memory / self._state.devices.largest
            self._compute += item.compute / FULL_COMPUTE

    def _open_next(self) -> list[Item]:
        """Open a GPU for the largest model that is left, of those that the fewest nodes may have, and fill it.

        Return the model if no GPU can take it.
        """
        key = min(self._rows, key=lambda key: (*_freedom(key), *(-part for part in self._rows[key][-1])))
        item = self._pop(key, len(self._rows[key]) - 1)
        slots = find_slot(self._state, item, _LARGE)
        if slots is None:
            return [item]
        self._state.put(item, slots)
        self._fill_gpu(slots[0][0])
        return []

    def _pop(self, key: _Class, at: int) -> Item:
        item = self._state.items[self._rows[key].pop(at)[1]]
        if not self._rows[key]:
            del self._rows[key]
        self._memory -= item.memory / self._state.devices.largest
        self._compute -= item.compute / FULL_COMPUTE
        return item

    def _fill_gpu(self, gpu: int) -> None:
        """Place models on a GPU until none that is left fits."""
        while True:
            matches = [(score, key, at) for key in self._rows for score, at in self._fitting(gpu, key)]
            if not matches:
                return
            _, key, at = max(matches, key=lambda match: match[0])
            self._state.put(self._pop(key, at), ((gpu,),))

    def _fitting(self, gpu: int, key: _Class) -> list[tuple[float, int]]:
        """Return the score and position of the largest model of a class that fits on a GPU."""
        state, row = self._state, self._rows[key]
        if key[0] is not None and state.devices.node[gpu] not in key[0]:
            return []
        last = bisect_left(row, (state.free[gpu] + 1, -1)) - 1
        for at in range(last, max(-1, last - _TRIED), -1):
            item = state.items[row[at][1]]
            within = not item.restricted or within_limits(state, item, state.devices.node[gpu])
            if within and state.takes(gpu, item.needs[0]) and allows_one(state, item, gpu):
                return [(self._score(gpu, item), at)]
        return []

    def _score(self, gpu: int, item: Item) -> float:
        state, all_memory, all_compute = self._state, self._memory, self._compute
        capacity = state.devices.memory[gpu]
        free, idle = state.free[gpu] / capacity, state.compute[gpu] / FULL_COMPUTE
        memory, compute = item.memory / capacity, item.compute / FULL_COMPUTE
        if self._match is Match.WEIGHED:
            return all_memory * memory * free + all_compute * compute * idle
        if self._match is Match.NEAREST:
            return -(all_memory * (free - memory) ** 2 + all_compute * (idle - compute) ** 2)
        imbalance = abs((free - memory) * all_compute - (idle - compute) * all_memory)
        return (all_memory * memory + all_compute * compute) / 2 - imbalance


def _freedom(key: _Class) -> tuple[int, tuple[int, ...]]:
    """Return how many nodes a class may have, to be sorted by."""
    nodes = key[0]
    return (1 << 30, ()) if nodes is None else (len(nodes), tuple(sorted(nodes)[:1]))

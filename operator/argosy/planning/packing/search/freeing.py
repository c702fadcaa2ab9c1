"""Items that free what another one lacks once they are ejected: on one GPU for one that takes a part of it, on a node
for others.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random
from typing import NamedTuple

from argosy.planning.packing.capacity import FULL_COMPUTE
from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.state import State

_OF_NODE = 12
"""Items of a node, or of a GPU, that are looked at."""


class Freeing(NamedTuple):
    """A set of items and the GPUs that another one may have then, ordered by how hard they were to place; those that
    are as hard by chance.
    """

    failures: int
    chance: float
    node: int
    gpus: Sequence[int]
    numbers: tuple[int, ...]


class _Freed(NamedTuple):
    """What one item frees: bytes, thousandths of compute, and bytes with the headroom."""

    settled: int
    compute: int
    surged: int
    number: int


_Lack = tuple[int, int, int]


class Ejectable:
    """The sets of items of a state that may be ejected. `failures`: how hard each item was to place until now."""

    def __init__(self, state: State, failures: Sequence[int], random: Random) -> None:
        self._state, self._failures, self._random = state, failures, random

    def sets(self, item: Item, node: int, counts: Sequence[int], may_open: int) -> Iterator[Freeing]:
        """Yield sets of so many items of a node without which it may have another one, as far as volume says."""
        gpus = self._state.devices.of_node(node)
        if not item.shares_gpu:
            yield from self._sets(self._lack_of_node(item, node, may_open), node, gpus, counts)
            return
        for gpu in gpus:
            if self._state.on[gpu] and not self._state.sealed[gpu]:
                yield from self._sets(self._lack(item, gpu), node, (gpu,), counts)

    def _sets(self, lack: _Lack, node: int, gpus: Sequence[int], counts: Sequence[int]) -> Iterator[Freeing]:
        failures, chance = self._failures, self._random.random
        rows = self._freed(gpus)
        for numbers in (one for count in counts for one in _OF_COUNT[count](rows, lack)):
            yield Freeing(sum(failures[number] for number in numbers), chance(), node, gpus, numbers)

    def _lack(self, item: Item, gpu: int) -> _Lack:
        state, need = self._state, item.needs[0]
        return need.settled - state.free[gpu], need.compute - state.compute[gpu], need.surged - state.spare[gpu]

    def _lack_of_node(self, item: Item, node: int, may_open: int) -> _Lack:
        """Return what an item lacks of the GPUs that are shared, and of the empty ones that it may open."""
        state, opened = self._state, min(may_open, self._state.nodes.counts[node])
        if item.exclusive:
            return 0, 0, 0
        shared = [gpu for gpu in state.devices.of_node(node) if not state.is_empty(gpu) and not state.sealed[gpu]]
        memory = state.node_free[node] + opened * state.devices.largest_of[node]
        compute = sum(state.compute[gpu] for gpu in shared) + opened * FULL_COMPUTE
        return item.memory - memory, item.compute - compute, 0

    def _freed(self, gpus: Sequence[int]) -> list[_Freed]:
        """Return what items free on these GPUs, a few of many."""
        state = self._state
        numbers = sorted({number for gpu in gpus for number in state.on[gpu]})
        if len(numbers) > _OF_NODE:
            numbers = sorted(self._random.sample(numbers, _OF_NODE))
        return [self._freed_by(state.items[number], gpus) for number in numbers]

    def _freed_by(self, item: Item, gpus: Sequence[int]) -> _Freed:
        if item.shares_gpu:
            need = item.needs[0]
            return _Freed(need.settled, need.compute, need.surged, item.number)
        slots = zip(item.needs, self._state.slots[item.number], strict=True)
        needs = [need for need, taken in slots for gpu in taken if gpu in gpus]
        settled, surged, compute = (sum(need[at] for need in needs) for at in range(3))
        return _Freed(settled, compute, surged, item.number)


def _ones(rows: Sequence[_Freed], lack: _Lack) -> Iterator[tuple[int, ...]]:
    memory, compute, both = lack
    return ((row[3],) for row in rows if row[0] >= memory and row[1] >= compute and row[2] >= both)


def _pairs(rows: Sequence[_Freed], lack: _Lack) -> Iterator[tuple[int, ...]]:
    memory, compute, both = lack
    for one, other in combinations(rows, 2):
        if one[0] + other[0] >= memory and one[1] + other[1] >= compute and one[2] + other[2] >= both:
            yield one[3], other[3]


def _threes(rows: Sequence[_Freed], lack: _Lack) -> Iterator[tuple[int, ...]]:
    for some in combinations(rows, 3):
        if all(sum(row[at] for row in some) >= part for at, part in enumerate(lack)):
            yield tuple(row[3] for row in some)


_OF_COUNT = {1: _ones, 2: _pairs, 3: _threes}

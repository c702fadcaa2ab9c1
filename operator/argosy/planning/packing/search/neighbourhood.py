"""A large-neighbourhood search: what is on a few GPUs is taken out and placed again, in another order, many times.

Its numbers come from a fixed seed and its steps are counted, so that the same facts give the same plan.
"""

from collections.abc import Sequence
from random import Random

from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.objective import Bound, rating
from argosy.planning.packing.search.slots import Fit, Opening, Preference, find_slot
from argosy.planning.packing.search.starts.greedy import dominant, memory, total
from argosy.planning.packing.search.state import State

_SEED = 1
_STEPS, _PATIENCE = 1500, 400
"""The most steps of a search, and those without progress after which it ends."""
_OF_MISSING = 50
"""Parts of what a start leaves out, of which one has to find a place for the search to go on."""
_RUINED = (2, 2, 3, 3, 4, 5)
_NOISE = (0.0, 0.05, 0.15, 0.4)
_SAMPLE = 8
"""Items without a place that one step tries to place: a fleet may lack thousands."""
_SIZES = (dominant, total, memory)
_FITS = (Fit.MEMORY, Fit.TOTAL, Fit.TOTAL, Fit.EVEN)
_LARGER = 0.7
"""How often a GPU of the largest kind is opened, and not of the smallest that will do."""
_EMPTIER, _OF = 0.6, 3
"""How often the first GPU is the emptiest, and of how many."""
_NEAR = 0.4
"""How often the others are of the same node."""
_EXCLUSIVE = 0.15
"""How often an item that has GPUs for itself is taken out, too."""


class Neighbourhood:
    """Improves a state in place; ask for it with `search`."""

    def __init__(self, state: State, missing: Sequence[Item], bound: Bound) -> None:
        self._state, self._bound, self._random = state, bound, Random(_SEED)
        self._missing = {item.number: item for item in missing}
        self._lacking = len(missing)
        capacity = state.devices.largest
        self._shared = [item.number for item in state.items if len(item.needs) > 1 or not item.exclusive]
        self._exclusive = [item.number for item in state.items if item.exclusive]
        self._sizes = [[size(item, capacity) for item in state.items] for size in _SIZES]

    def search(self) -> list[Item]:
        """Take steps while they help, and something is missing or above the bound. Return what has no place."""
        patience = min(_PATIENCE, len(self._state.items) ** 2)
        best, since = self._progress(), 0
        for _ in range(_STEPS):
            if since >= patience or (not self._missing and self._bound.is_near(self._state.used)):
                break
            self._step()
            reached = self._progress()
            best, since = (reached, 0) if reached < best else (best, since + 1)
        return list(self._missing.values())

    def _progress(self) -> tuple[int, int, int]:
        """Return what a search is to lower; of thousands that are missing, some more or less are no progress."""
        return (
            len(self._missing) * _OF_MISSING // max(_OF_MISSING, self._lacking),
            self._state.used,
            self._state.shared_nodes + self._state.shared_domains,
        )

    def _step(self) -> None:
        state = self._state
        out = self._ruined()
        homeless = self._sampled()
        used, before = state.used, rating(state, homeless)
        state.log = []
        for item in out:
            state.take(item)
        left = self._recreate([*out, *homeless], used, len(homeless))
        if rating(state, left) > before:
            state.undo()
            return
        state.log = None
        for item in homeless:
            del self._missing[item.number]
        self._missing.update((item.number, item) for item in left)

    def _ruined(self) -> list[Item]:
        """Return the items of a few GPUs, and now and then one that has GPUs for itself."""
        state, random = self._state, self._random
        gpus = self._gpus(random.choice(_RUINED))
        numbers = {number for gpu in gpus for number in state.on[gpu]}
        if self._exclusive and random.random() < _EXCLUSIVE:
            number = random.choice(self._exclusive)
            numbers.update((number,) if number in state.slots else ())
        return [state.items[number] for number in sorted(numbers)]

    def _gpus(self, count: int) -> set[int]:
        """Return GPUs that are shared: often an empty one first, and others of its node."""
        state, random = self._state, self._random
        chosen = {self._gpu(emptier=random.random() < _EMPTIER)} - {-1}
        if chosen and random.random() < _NEAR:
            node = state.devices.node[min(chosen)]
            near = [gpu for gpu in state.devices.of_node(node) if state.on[gpu] and not state.sealed[gpu]]
            chosen.update(random.sample(near, min(len(near), count)))
        for _ in range(2 * count):
            if len(chosen) >= count:
                break
            chosen |= {self._gpu()} - {-1}
        return chosen

    def _gpu(self, emptier: bool = False) -> int:
        """Return a GPU that items share, the emptiest of several if `emptier`; -1 if there is none."""
        state, random = self._state, self._random
        if not self._shared:
            return -1
        if state.devices.anchors:
            slots = (state.slots.get(random.choice(self._shared)) for _ in range(_OF if emptier else 1))
            result = [gpus[-1][0] for gpus in slots if gpus is not None]
        else:
            result = [random.choice(state.open)[1] for _ in range(_OF if emptier else 1)] if state.open else []
        return max(result, key=lambda gpu: state.free[gpu] / state.devices.memory[gpu], default=-1)

    def _sampled(self) -> list[Item]:
        numbers = sorted(self._missing)
        chosen = numbers if len(numbers) <= _SAMPLE else sorted(self._random.sample(numbers, _SAMPLE))
        return [self._missing[number] for number in chosen]

    def _recreate(self, items: list[Item], used: int, lacking: int) -> list[Item]:
        """Place items again in an order of this step. Return those that found no place, once they are too many."""
        state, random = self._state, self._random
        by = Preference(random.choice(_FITS), Opening.LARGE if random.random() < _LARGER else Opening.SMALL)
        left: list[Item] = []
        ordered = self._ordered(items, homeless_first=lacking > 0 and random.random() < 0.5)
        for at, item in enumerate(ordered):
            slots = find_slot(state, item, by, may_open=state.used < used or lacking > 0 or item.exclusive > 0)
            if slots is None:
                left.append(item)
                if len(left) > lacking:
                    return left + ordered[at + 1 :]
            else:
                state.put(item, slots)
        return left

    def _ordered(self, items: Sequence[Item], homeless_first: bool) -> list[Item]:
        random = self._random
        sizes, noise, together = random.choice(self._sizes), random.choice(_NOISE), random.random() < 0.9

        def key(item: Item) -> tuple[object, ...]:
            size = sizes[item.number] * (1 + noise * (random.random() - 0.5))
            first = homeless_first and item.number in self._missing
            return (not first, -item.exclusive, together and len(item.needs) == 1, -size, item.number)

        return sorted(items, key=key)

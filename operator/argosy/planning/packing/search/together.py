"""Several models of one item on one node: the fewest GPUs opened, then the least memory left."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from argosy.planning.packing.layout import Assignment
from argosy.planning.packing.search.items import Item, Need
from argosy.planning.packing.search.rules import allows, within_limits
from argosy.planning.packing.search.state import State

_STEPS = 200
_TRIED = 12
"""Nodes that are searched where they lack equally many GPUs by volume."""


@dataclass(frozen=True, slots=True, order=True)
class _Placing:
    """A way to have all models of an item: GPUs opened, whether one of them is suspect or another server's still, empty
    ones on a node that loses some, bytes left on the shared ones, and the GPUs.
    """

    opened: int
    suspect: bool
    displaces: bool
    stranded: int
    left: int
    slots: Assignment


def find_slots_together(state: State, item: Item, may_open: bool, avoided: Collection[int]) -> Assignment | None:
    """Return GPUs of one node for all models of an item; None where no node was found."""
    best: _Placing | None = None
    tried, level = 0, -1
    for lack, node in _nodes(state, item, may_open, avoided):
        if best is not None and (lack > best.opened or tried >= _TRIED):
            break
        tried = tried + 1 if lack == level else 1
        level = lack
        result = _Search(state, item, node, state.nodes.counts[node] if may_open else 0).best()
        if result is not None and (best is None or result < best):
            best = result
    return None if best is None else best.slots


def find_slots_of_node(state: State, item: Item, node: int, may_open: int) -> Assignment | None:
    """Return GPUs of this node for all models of an item, of which so many may be empty; None where none were found."""
    result = _Search(state, item, node, min(may_open, state.nodes.counts[node])).best()
    return None if result is None else result.slots


def _nodes(state: State, item: Item, may_open: bool, avoided: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield nodes that may take an item by volume, with the GPUs that they lack for it: the tightest first. Of empty
    nodes that are alike, the first.
    """
    able: list[tuple[int, int, int]] = []
    empty_kinds: set[int] = set()
    devices, counts, free, memory = state.devices, state.nodes.counts, state.node_free, item.memory
    exclusive, restricted, largest, first = item.exclusive, item.restricted, devices.largest_of, devices.first
    for node in range(len(devices.nodes)) if item.nodes is None else sorted(item.nodes):
        lacking, empty = memory - free[node], counts[node]
        lack = exclusive + (-(-lacking // largest[node]) if lacking > 0 else 0)
        if lack > (empty if may_open else 0) or node in avoided:
            continue
        if restricted and not within_limits(state, item, node):
            continue
        if empty == first[node + 1] - first[node]:
            if devices.kinds[node] in empty_kinds:
                continue
            empty_kinds.add(devices.kinds[node])
        able.append((lack, empty, node))
    yield from ((lack, node) for lack, _, node in sorted(able))


@dataclass
class _Search:
    """A depth-first search over the GPUs of one node, within a number of steps; `extra` GPUs may be opened."""

    state: State
    item: Item
    node: int
    extra: int
    steps: int = _STEPS
    chosen: list[tuple[int, ...]] = field(default_factory=list)
    taken: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    opened: set[int] = field(default_factory=set)
    result: _Placing | None = None

    def best(self) -> _Placing | None:
        """Return the best way that was found."""
        self._descend(0)
        return self.result

    def _descend(self, at: int) -> None:
        best = self.result
        if self.steps <= 0 or (best is not None and len(self.opened) >= best.opened):
            return
        self.steps -= 1
        if at == len(self.item.needs):
            self._record()
            return
        need = self.item.needs[at]
        for gpus in self._options(need):
            opened = {gpu for gpu in gpus if gpu not in self.opened and self.state.is_empty(gpu)}
            if len(self.opened) + len(opened) <= self.extra:
                self._try(at, need, gpus, opened)

    def _try(self, at: int, need: Need, gpus: tuple[int, ...], opened: set[int]) -> None:
        before = {gpu: self.taken.get(gpu, (0, 0, 0)) for gpu in gpus}
        for gpu, (settled, surged, compute) in before.items():
            self.taken[gpu] = (settled + need.settled, surged + need.surged, compute + need.compute)
        self.opened |= opened
        self.chosen.append(gpus)
        self._descend(at + 1)
        self.chosen.pop()
        self.opened -= opened
        self.taken.update(before)

    def _record(self) -> None:
        slots = tuple(self.chosen)
        shared = {gpu for need, gpus in zip(self.item.needs, slots, strict=True) if not need.gpus for gpu in gpus}
        left = sum(self.state.free[gpu] - self.taken[gpu][0] for gpu in shared)
        devices, opened = self.state.devices, len(self.opened)
        displaces = any(devices.busy[gpu] and devices.owners[gpu] is None for gpu in self.opened)
        stranded = self.state.nodes.counts[self.node] if opened else 0
        suspect = opened > 0 and devices.suspect[self.node]
        placing = _Placing(opened, suspect, displaces, stranded, left, slots)
        if (self.result is None or placing < self.result) and allows(self.state, self.item, slots):
            self.result = placing

    def _options(self, need: Need) -> Iterator[tuple[int, ...]]:
        if need.gpus > 1:
            for domain in self._domains():
                yield from self._exclusive(need, self.state.devices.domains[domain])
        elif need.gpus:
            yield from self._exclusive(need, self.state.devices.of_node(self.node))
        else:
            yield from self._shared(need)

    def _domains(self) -> list[int]:
        """Return the groups of linked GPUs of the node, those with the fewest empty GPUs first."""
        gpus, devices = self.state.devices.of_node(self.node), self.state.devices
        result = {domain for gpu in gpus for domain in devices.domains_of[gpu]}
        return sorted(result, key=lambda domain: (self.state.domains.counts[domain], domain))

    def _exclusive(self, need: Need, gpus: Sequence[int]) -> Iterator[tuple[int, ...]]:
        state = self.state
        empty = [gpu for gpu in gpus if state.is_empty(gpu) and gpu not in self.opened and state.takes(gpu, need)]
        empty.sort(key=lambda gpu: (state.devices.busy[gpu], gpu))
        if len(empty) >= need.gpus:
            yield tuple(sorted(empty[: need.gpus]))

    def _shared(self, need: Need) -> Iterator[tuple[int, ...]]:
        """Yield GPUs in use that can take a model, the tightest first, then the first empty one of each size."""
        taken, opened = self.taken, self.opened
        needs_memory, needs_spare, needs_compute, _ = need
        out_of_reach = self._out_of_reach()
        used: list[tuple[int, int, int, int]] = []
        empty: dict[tuple[int, int, int], int] = {}
        for gpu, memory, idle, spare, is_empty in self._left:
            if gpu in taken:
                settled, surged, compute = taken[gpu]
                memory, idle, spare = memory - settled, idle - compute, spare - surged
            if memory < needs_memory or idle < needs_compute or spare < needs_spare or gpu in out_of_reach:
                continue
            if is_empty and gpu not in opened:
                empty.setdefault((memory, idle, spare), gpu)
            else:
                used.append((memory, idle, spare, gpu))
        used.sort()
        yield from ((gpu,) for _, _, _, gpu in used)
        yield from ((empty[left],) for left in sorted(empty))

    def _out_of_reach(self) -> set[int]:
        """Return GPUs that the next model may not have: those taken whole, and those of its own other parts."""
        needs, demands, chosen = self.item.needs, self.item.demands, self.chosen
        mine = demands[len(chosen)]
        return {gpu for at, gpus in enumerate(chosen) if needs[at].gpus or demands[at] == mine for gpu in gpus}

    @cached_property
    def _left(self) -> list[tuple[int, int, int, int, bool]]:
        """The GPUs of the node that may be shared, in the order in which those that are alike are taken: memory,
        compute and memory with the headroom that they have left, and whether they are empty.
        """
        state, busy = self.state, self.state.devices.busy
        free, idle, spare, sealed = state.free, state.compute, state.spare, state.sealed
        gpus = [gpu for gpu in state.devices.of_node(self.node) if not sealed[gpu]]
        gpus.sort(key=busy.__getitem__)
        return [(gpu, free[gpu], idle[gpu], spare[gpu], state.is_empty(gpu)) for gpu in gpus]

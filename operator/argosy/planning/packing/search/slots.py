"""The place for one item, by a preference: an open GPU, an empty one, linked ones, or a node for several models."""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum

from argosy.planning.packing.capacity import FULL_COMPUTE
from argosy.planning.packing.layout import Assignment
from argosy.planning.packing.search.items import Item, Need
from argosy.planning.packing.search.rules import allows, allows_node, allows_one
from argosy.planning.packing.search.state import State
from argosy.planning.packing.search.together import find_slots_together

_COMPARED = 48
"""Open GPUs that are compared for one model, the fullest ones that can take it."""
NOWHERE: frozenset[int] = frozenset()


class Opening(Enum):
    """Which empty GPU is taken first: of a node with few left, or of the largest or the smallest kind."""

    TIGHT = "Tight"
    LARGE = "Large"
    SMALL = "Small"


class Fit(Enum):
    """Which open GPU is taken first: with least memory left, least of both left, or both left evenly."""

    MEMORY = "Memory"
    TOTAL = "Total"
    EVEN = "Even"


@dataclass(frozen=True, slots=True)
class Preference:
    """How a place is chosen. `different_nodes`: replicas take different nodes even where that takes another GPU."""

    fit: Fit = Fit.TOTAL
    opening: Opening = Opening.TIGHT
    different_nodes: bool = False


def find_slot(state: State, item: Item, by: Preference, may_open: bool = True) -> Assignment | None:
    """Return the preferred GPUs for an item; None where it fits nowhere, or only on empty GPUs that it may not open."""
    for opens, avoided in _passes(state, item, by, may_open):
        result = _find_slot(state, item, by, opens, avoided)
        if result is not None:
            return result
    return None


def _passes(state: State, item: Item, by: Preference, may_open: bool) -> Iterator[tuple[bool, Collection[int]]]:
    """Yield whether a GPU may be opened, and the nodes to avoid, the preferred pass first."""
    hosting = state.hosts.get(item.group) if item.apart else None
    if not hosting:
        yield may_open, NOWHERE
        return
    near = [*state.near(item), hosting.keys(), NOWHERE]
    for opens in (may_open,) if by.different_nodes else (False, True) if may_open else (False,):
        yield from ((opens, avoided) for avoided in near)


def _find_slot(state: State, item: Item, by: Preference, may_open: bool, avoided: Collection[int]) -> Assignment | None:
    if len(item.needs) > 1:
        return find_slots_together(state, item, may_open, avoided)
    if item.exclusive > 1:
        return _linked(state, item, by.opening, avoided) if may_open else None
    gpu = None if item.exclusive else _open_gpu(state, item, by.fit, avoided)
    if gpu is None and may_open:
        gpu = _empty_gpu(state, item, by.opening, avoided)
    return None if gpu is None else ((gpu,),)


def _open_gpu(state: State, item: Item, fit: Fit, avoided: Collection[int]) -> int | None:
    """Return the open GPU that fits a model best."""
    need, node = item.needs[0], state.devices.node
    best, least, compared = None, 0, 0
    for at in range(bisect_left(state.open, (need.settled, -1)), len(state.open)):
        gpu = state.open[at][1]
        if not state.takes(gpu, need) or node[gpu] in avoided or not allows_node(state, item, node[gpu]):
            continue
        if not allows_one(state, item, gpu):
            continue
        left = _left(state, gpu, need, fit)
        if best is None or left < least:
            best, least = gpu, left
        compared += 1
        if fit is Fit.MEMORY or compared >= _COMPARED:
            break
    return best


def _left(state: State, gpu: int, need: Need, fit: Fit) -> int:
    memory = (state.free[gpu] - need.settled) * FULL_COMPUTE // state.devices.memory[gpu]
    compute = state.compute[gpu] - need.compute
    return memory + compute if fit is not Fit.EVEN else memory * memory + compute * compute - memory * compute


def _empty_gpu(state: State, item: Item, opening: Opening, avoided: Collection[int]) -> int | None:
    """Return the empty GPU that is opened for a model."""
    need = item.needs[0]

    def on(node: int) -> int | None:
        return None if node in avoided or not allows_node(state, item, node) else _empty_on(state, item, need, node)

    return min(state.nodes.first(1, on), key=lambda gpu: _opening_key(state, gpu, need, opening), default=None)


def _empty_on(state: State, item: Item, need: Need, node: int) -> int | None:
    """Return the empty GPU of a node that a model takes: of the smallest, and of those the one with the fewest linked
    ones that are empty.
    """
    devices = state.devices

    def cost(gpu: int) -> tuple[object, ...]:
        peers = max((state.domains.counts[domain] for domain in devices.domains_of[gpu]), default=0)
        return devices.memory[gpu], peers, devices.busy[gpu], gpu

    able = [gpu for gpu in devices.of_node(node) if state.is_empty(gpu) and state.takes(gpu, need)]
    return next((gpu for gpu in sorted(able, key=cost) if allows(state, item, ((gpu,),))), None)


def _opening_key(state: State, gpu: int, need: Need, opening: Opening) -> tuple[int, ...]:
    devices = state.devices
    memory = devices.memory[gpu]
    size = 0 if opening is Opening.TIGHT else -memory if opening is Opening.LARGE else memory
    joins = devices.owners[gpu] is not None
    return (
        size,
        devices.suspect[devices.node[gpu]],
        devices.busy[gpu] and not joins,
        joins,
        state.nodes.counts[devices.node[gpu]],
        0 if need.gpus else (memory - need.settled) * FULL_COMPUTE // memory,
        gpu,
    )


def _linked(state: State, item: Item, opening: Opening, avoided: Collection[int]) -> Assignment | None:
    """Return linked GPUs for a model that needs several, of a group with the fewest to spare."""
    need, devices = item.needs[0], state.devices

    def among(domain: int) -> tuple[int, ...] | None:
        node = devices.node[devices.domains[domain][0]]
        if node in avoided or not allows_node(state, item, node):
            return None
        empty = [gpu for gpu in devices.domains[domain] if state.is_empty(gpu) and state.takes(gpu, need)]
        empty.sort(key=lambda gpu: (devices.memory[gpu], devices.busy[gpu], gpu))
        chosen = tuple(sorted(empty[: need.gpus]))
        return chosen if len(chosen) == need.gpus and allows(state, item, (chosen,)) else None

    def cost(gpus: tuple[int, ...]) -> tuple[object, ...]:
        node = devices.node[gpus[0]]
        displaces = any(devices.busy[gpu] and devices.owners[gpu] is None for gpu in gpus)
        memory = 0 if opening is Opening.TIGHT else devices.memory[gpus[0]]
        return devices.suspect[node], displaces, state.nodes.counts[node], memory, gpus

    result = min(state.domains.first(need.gpus, among), key=cost, default=None)
    return None if result is None else (result,)

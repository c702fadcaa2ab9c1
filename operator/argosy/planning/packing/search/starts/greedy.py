"""Greedy starts: every item in an order, each in the place that it prefers. The plain baselines are among them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from argosy.planning.packing.capacity import FULL_COMPUTE
from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.slots import Fit, Opening, Preference, find_slot
from argosy.planning.packing.search.state import State

Order = Callable[[Item], tuple[object, ...]]
Size = Callable[[Item, int], int]


@dataclass(frozen=True, slots=True)
class Start:
    """An order of the items, and how each finds its place."""

    order: Order
    by: Preference


def fill(state: State, items: Sequence[Item], start: Start) -> list[Item]:
    """Place the items in the order of a start. Return those that fit nowhere."""
    missing: list[Item] = []
    hopeless: set[object] = set()
    for item in sorted(items, key=start.order):
        slots = None if item.shape in hopeless else find_slot(state, item, start.by)
        if slots is None:
            hopeless.add(item.shape)
            missing.append(item)
        else:
            state.put(item, slots)
    return missing


def dominant(item: Item, capacity: int) -> int:
    """Return the thousandths of the resource of which an item takes the larger part."""
    return max(item.memory * FULL_COMPUTE // capacity, item.compute)


def total(item: Item, capacity: int) -> int:
    """Return the thousandths of both resources together."""
    return item.memory * FULL_COMPUTE // capacity + item.compute


def memory(item: Item, capacity: int) -> int:
    """Return the thousandths of memory."""
    return item.memory * FULL_COMPUTE // capacity


def ranked_starts(capacity: int) -> Iterator[Start]:
    """Yield starts that go by rank, and have replicas on different nodes wherever there is room for it."""
    for size in (dominant, total):
        yield Start(_by_rank(size, capacity), Preference(different_nodes=True))


def fair_starts(capacity: int) -> Iterator[Start]:
    """Yield starts for a pool that is too small: one replica of everything before a second of anything."""

    def hardest(item: Item) -> tuple[object, ...]:
        return (item.rank, item.replica.index, -item.exclusive, -dominant(item, capacity), item.group)

    def easiest(item: Item) -> tuple[object, ...]:
        return (item.rank, item.replica.index, item.exclusive, dominant(item, capacity), item.group)

    for order in (hardest, easiest):
        yield Start(order, Preference(different_nodes=True))


def dense_starts(capacity: int) -> Iterator[Start]:
    """Yield starts for few GPUs: what is bound to some nodes and takes whole GPUs first, then by size."""
    for size, fit, opening in (
        (dominant, Fit.MEMORY, Opening.LARGE),
        (total, Fit.TOTAL, Opening.LARGE),
        (memory, Fit.MEMORY, Opening.LARGE),
        (dominant, Fit.TOTAL, Opening.SMALL),
        (total, Fit.EVEN, Opening.LARGE),
    ):
        yield Start(constrained_first(size, capacity), Preference(fit, opening))


def fill_by_volume(state: State, items: Sequence[Item], start: Start) -> list[Item]:
    """Place items of a pool that is too small: those that take least, as many as there is volume for, in the order of a
    start; then the others. Return those that fit nowhere.
    """
    largest = state.devices.largest
    ordered = sorted(items, key=lambda item: (item.rank, item.replica.index, _volume(item, largest), item.number))
    free = [len(state.free) * FULL_COMPUTE, sum(state.free), sum(state.compute)]
    chosen, others = list[Item](), list[Item]()
    for item in ordered:
        takes = (_volume(item, largest), item.memory + item.exclusive * largest, item.compute)
        enough = all(left >= part for left, part in zip(free, takes, strict=True))
        free = [left - part for left, part in zip(free, takes, strict=True)] if enough else free
        (chosen if enough else others).append(item)
    rest = {item.number: at for at, item in enumerate((*fill(state, chosen, start), *others))}
    by_volume = Start(lambda item: (item.rank, rest[item.number]), start.by)
    return fill(state, [state.items[number] for number in rest], by_volume)


def _volume(item: Item, capacity: int) -> int:
    """Return the thousandths of GPUs that an item takes."""
    return item.exclusive * FULL_COMPUTE + dominant(item, capacity)


def constrained_first(size: Size, capacity: int) -> Order:
    """Return an order: items that few nodes may have first, then whole GPUs, then several models, then by size."""

    def order(item: Item) -> tuple[object, ...]:
        nodes = len(item.nodes) if item.nodes is not None else 1 << 30
        return (nodes, -item.exclusive, len(item.needs) == 1, -size(item, capacity), item.group, item.replica.index)

    return order


def _by_rank(size: Size, capacity: int) -> Order:
    def order(item: Item) -> tuple[object, ...]:
        return (item.rank, -item.exclusive, -size(item, capacity), item.group, item.replica.index)

    return order

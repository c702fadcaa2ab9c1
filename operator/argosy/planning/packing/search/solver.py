"""The search, from a layout with what stays to one with all that has a slot next to it."""

from collections.abc import Callable, Iterator, Sequence

from argosy.planning.packing.layout import Layout, PlacedReplica, Replica, Server
from argosy.planning.packing.search.devices import Devices, devices_of
from argosy.planning.packing.search.ejection import Ejection
from argosy.planning.packing.search.items import Item, items_of
from argosy.planning.packing.search.neighbourhood import Neighbourhood
from argosy.planning.packing.search.objective import Bound, rating
from argosy.planning.packing.search.rules import component
from argosy.planning.packing.search.slots import Preference, find_slot
from argosy.planning.packing.search.starts.dot_product import DotProduct, Match
from argosy.planning.packing.search.starts.greedy import (
    Start,
    dense_starts,
    fair_starts,
    fill,
    fill_by_volume,
    ranked_starts,
)
from argosy.planning.packing.search.state import State

_MANY = 2000
"""Items above which only a few starts are tried."""


def solve(layout: Layout, replicas: Sequence[Replica]) -> tuple[Layout, tuple[Replica, ...]]:
    """Return the layout with these replicas in addition, and those that have no place.

    Each has a model that needs a GPU. What the layout has stays as it is.
    """
    devices, hopeless = devices_of(layout), tuple[Replica, ...]()
    items = items_of(layout.topology, replicas)
    if len(items) <= _MANY:
        hopeless = _hopeless(devices, items)
        unfit = {replica.key for replica in hopeless}
        items = items_of(layout.topology, [replica for replica in replicas if replica.key not in unfit])
    if not items:
        return layout, hopeless
    bound = Bound.of(devices, items)
    state, missing = _best_start(devices, items, bound)
    if len(items) > 1:
        missing = Neighbourhood(state, missing, bound).search()
        if missing:
            missing = Ejection(state, bound).put_missing(missing)
        else:
            Ejection(state, bound).search()
    last = _last_missing(state, fill(state, missing, next(ranked_starts(devices.largest))))
    return _applied(layout, state), (*hopeless, *(item.replica for item in last))


def _hopeless(devices: Devices, items: Sequence[Item]) -> tuple[Replica, ...]:
    """Return the replicas that have no place even where nothing else is placed."""
    state = State(devices, items)
    shapes = {item.shape: item for item in items}
    unfit = {shape for shape, item in shapes.items() if find_slot(state, item, Preference()) is None}
    return tuple(item.replica for item in items if item.shape in unfit)


def _last_missing(state: State, missing: Sequence[Item]) -> list[Item]:
    """Give the places of a group's last replicas to those before them that have none. Return what has none then."""
    by_group: dict[str, list[Item]] = {}
    for item in missing:
        if item.apart:
            by_group.setdefault(item.group, []).append(item)
    last = [item for item in missing if not item.apart]
    for items in by_group.values():
        last += _reordered(state, items)
    return last


def _reordered(state: State, missing: Sequence[Item]) -> list[Item]:
    group, absent = missing[0].group, {item.number for item in missing}
    every = [item for item in state.items if item.group == group]
    every.sort(key=lambda item: item.replica.index)
    slots = [state.slots[item.number] for item in every if item.number not in absent]
    for item in every:
        if item.number not in absent:
            state.take(item)
    for item, of_item in zip(every, slots, strict=False):
        state.put(item, of_item)
    return every[len(slots) :]


def _best_start(devices: Devices, items: Sequence[Item], bound: Bound) -> tuple[State, list[Item]]:
    attempts: list[tuple[State, list[Item]]] = []
    for state, missing in _starts(devices, items):
        attempts.append((state, missing))
        if not missing and bound.is_near(state.used):
            return state, missing
    return min(attempts, key=lambda attempt: rating(*attempt))


def _starts(devices: Devices, items: Sequence[Item]) -> Iterator[tuple[State, list[Item]]]:
    """Yield states that greedy starts fill; of many items a few, by rank only where others leave something out."""
    capacity, lacking = devices.largest, True
    ranked, dense, fair = (tuple(of(capacity)) for of in (ranked_starts, dense_starts, fair_starts))
    few = len(items) > _MANY

    def filled(how: Callable[[State], list[Item]]) -> tuple[State, list[Item]]:
        nonlocal lacking
        state = State(devices, items)
        missing = how(state)
        lacking = lacking and bool(missing)
        return state, missing

    def greedy(start: Start) -> tuple[State, list[Item]]:
        return filled(lambda state: fill(state, items, start))

    def by_dot_product(match: Match) -> tuple[State, list[Item]]:
        return filled(lambda state: DotProduct(state, match).fill(items))

    def by_volume(start: Start) -> tuple[State, list[Item]]:
        return filled(lambda state: fill_by_volume(state, items, start))

    yield from map(greedy, dense[:1] if few else (*ranked, *dense))
    yield from map(by_dot_product, (Match.WEIGHED,) if few else Match)
    if lacking:
        yield from map(greedy, ranked[:1] if few else fair)
        yield from map(by_volume, dense[: 1 if few else 2])


def _applied(layout: Layout, state: State) -> Layout:
    """Return the layout with what the state has placed, on servers that go by the GPUs that items tie together."""
    topology, devices = layout.topology, state.devices
    names = layout.free_names()
    done: set[int] = set()
    filled: list[tuple[Server, tuple[PlacedReplica, ...]]] = []
    for number in sorted(state.slots, key=lambda number: min(min(gpus) for gpus in state.slots[number])):
        if number in done:
            continue
        server = component(state, (gpu for gpus in state.slots[number] for gpu in gpus))
        done |= server.items
        placed = tuple(_placed(state, one) for one in sorted(server.items))
        if server.anchors:
            before = layout.servers[server.anchors[0].name]
            filled.append((before, (*before.placed, *placed)))
        else:
            filled.append((Server(next(names), tuple(topology.nodes)[devices.node[min(server.gpus)]]), placed))
    return layout.with_servers(filled)


def _placed(state: State, number: int) -> PlacedReplica:
    item, index = state.items[number], state.devices.index
    slots = tuple(tuple(index[gpu] for gpu in gpus) for gpus in state.slots[number])
    return PlacedReplica(item.replica, item.assignment(slots))

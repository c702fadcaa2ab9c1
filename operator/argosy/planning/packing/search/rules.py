"""Which GPUs an item may have: the rules of the server that it would be on."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from argosy.planning.packing.layout import Assignment
from argosy.planning.packing.search.devices import Anchor
from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.state import State


@dataclass(slots=True)
class Component:
    """GPUs that items tie together, which is a server: its items, and the servers that stay among them."""

    gpus: set[int]
    items: set[int] = field(default_factory=set)
    anchors: list[Anchor] = field(default_factory=list)


def component(state: State, gpus: Iterable[int]) -> Component:
    """Return the server that these GPUs would be on together."""
    result = Component(set(gpus))
    todo = list(result.gpus)
    while todo:
        gpu = todo.pop()
        joined: list[int] = []
        anchor = state.devices.owners[gpu]
        if anchor is not None and anchor not in result.anchors:
            result.anchors.append(anchor)
            joined += anchor.gpus
            joined += (idle for idle in anchor.reach or () if state.on[idle])
        for number in state.on[gpu]:
            if number not in result.items:
                result.items.add(number)
                joined += (other for slots in state.slots[number] for other in slots)
        new = [other for other in joined if other not in result.gpus]
        result.gpus.update(new)
        todo += new
    return result


def allows_node(state: State, item: Item, node: int) -> bool:
    """Return whether an item may run on a node, which takes new models, next to where its group has replicas."""
    if item.nodes is not None and node not in item.nodes:
        return False
    return not item.restricted or within_limits(state, item, node)


def within_limits(state: State, item: Item, node: int) -> bool:
    """Return whether a node has none of the groups that an item is kept apart from, and its topology domains may have
    one more replica of the item's group.
    """
    hosts = (state.hosts[other] for other in item.not_on_node if other in state.hosts)
    if any(of_other[node] for of_other in hosts):
        return False
    name = state.devices.nodes[node]
    return all(limit.allows(state.counts(item.group, limit), name) for limit in item.limits)


def allows_one(state: State, item: Item, gpu: int) -> bool:
    """Return whether an item of one shared model may join what is on a GPU."""
    if state.ties[gpu] or state.devices.owners[gpu] is not None:
        return allows(state, item, ((gpu,),))
    if state.sizes[gpu] + item.size > state.devices.max_bytes:
        return False
    here = {state.items[number].group for number in state.on[gpu]}
    return not (item.apart and item.group in here) and here.isdisjoint(item.not_on_server)


def allows(state: State, item: Item, slots: Assignment) -> bool:
    """Return whether the server that an item would be on keeps to the rules: replicas apart, the size of its documents,
    the number of its GPUs, one slice alone, no restart of one that runs, and the first GPUs for what needs them.
    """
    mine = {gpu for gpus in slots for gpu in gpus}
    server = component(state, mine)
    here = [state.items[number] for number in server.items]
    size = item.size + sum(state.sizes[gpu] for gpu in server.gpus)
    if size > state.devices.max_bytes or not _apart(item, here, server):
        return False
    most = state.devices.max_gpus
    if most is not None and len(server.gpus) > most and not any(one.gpus >= server.gpus for one in server.anchors):
        return False
    if len(server.gpus) > 1 and any(state.devices.sliced[gpu] for gpu in server.gpus):
        return False  # a process sees one slice at most
    return _keeps_anchor(server) and _gives_first_gpus(state, item, slots, server, here)


def _apart(item: Item, here: Iterable[Item], server: Component) -> bool:
    items = (item, *here)
    anchored = [name for anchor in server.anchors for name in anchor.groups]
    names = [*(one.group for one in items if one.apart), *anchored]
    if len(names) != len(set(names)):
        return False
    every = {*(one.group for one in items), *anchored}
    return all(every.isdisjoint(one.not_on_server) for one in items)


def _keeps_anchor(server: Component) -> bool:
    """Return whether no server that stays is joined with another, or has to restart for a further GPU."""
    if not server.anchors:
        return True
    anchor = server.anchors[0]
    if len(server.anchors) > 1 or (anchor.ordered and server.gpus != anchor.gpus):
        return False
    return anchor.reach is None or server.gpus <= anchor.reach


def _gives_first_gpus(state: State, item: Item, slots: Assignment, server: Component, here: Iterable[Item]) -> bool:
    """Return whether the models that need the first GPUs of their server have them."""
    placed = [(item, slots), *((one, state.slots[one.number]) for one in here)]
    if not any(one.first_gpus for one, _ in placed):
        return True
    every = sorted(server.gpus)
    return all(
        set(gpus) == set(every[: len(gpus)])
        for one, of_one in placed
        for at, gpus in zip(one.demands, of_one, strict=True)
        if one.replica.group.demands[at].footprint.first_gpus
    )

"""What a relocation comes to: moves from server to server, and the fleet once they are done."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from argosy.planning.consolidation.fleet import RunningFleet
from argosy.planning.consolidation.moves import Move
from argosy.planning.packing.layout import Assignment, Replica
from argosy.planning.packing.layout.limits import crowding
from argosy.planning.packing.search.items import Item
from argosy.planning.packing.search.rules import component
from argosy.planning.server_names import free_names

Slots = Mapping[int, Assignment]
"""GPUs by the number of an item, as the state numbers them."""


def moves_of(fleet: RunningFleet, server: str, before: Slots) -> tuple[Move, ...] | None:
    """Return the moves of the items that are elsewhere than `before`, and of the server's replicas on the CPU.

    None where a replica on the CPU finds no server, or where servers would wait for each other's memory.
    """
    names, opened = _free_names(fleet), dict[frozenset[int], str]()
    moves: list[Move] = []
    for number in sorted(before):
        slots = fleet.state.slots[number]
        target = fleet.owners.get(slots[0][0])
        if target is None:
            gpus = frozenset(component(fleet.state, slots[0]).gpus)
            target = opened[gpus] if gpus in opened else opened.setdefault(gpus, next(names))
        moves.append(_move(fleet, fleet.state.items[number], fleet.owners[before[number][0][0]], target))
    for replica in fleet.on_cpu[server]:
        receiving = _server_for(fleet, replica, server, [move.target for move in moves])
        if receiving is None:
            return None
        models = (demand.model for demand in replica.group.demands)
        moves.append(
            Move(
                replica.group.name,
                server,
                fleet.hosts[server],
                receiving,
                fleet.hosts[receiving],
                dict.fromkeys(models, ()),
                0,
            )
        )
    return tuple(moves) if _is_ordered(moves) else None


def _move(fleet: RunningFleet, item: Item, source: str, target: str) -> Move:
    devices, slots = fleet.state.devices, fleet.state.slots[item.number]
    assigned = item.assignment(tuple(tuple(devices.index[gpu] for gpu in gpus) for gpus in slots))
    gpus = {demand.model: on for demand, on in zip(item.replica.group.demands, assigned, strict=True)}
    node = devices.nodes[devices.node[slots[0][0]]]
    return Move(item.group, source, fleet.hosts[source], target, node, gpus, fleet.bytes_of(item))


def _free_names(fleet: RunningFleet) -> Iterator[str]:
    taken = fleet.facts.taken | fleet.gpus.keys() | {server.name for server in fleet.facts.current}
    return free_names(fleet.facts.pool.name, taken)


def _server_for(fleet: RunningFleet, replica: Replica, source: str, preferred: Iterable[str]) -> str | None:
    """Return a server for a replica that needs no GPU: far from others of its group, and of equally far ones first
    those that get other models of the step.
    """
    every = (server for server in dict.fromkeys((*preferred, *fleet.gpus)) if server in fleet.gpus)
    able = (server for server in every if server != source and _takes(fleet, replica, server))
    if replica.group.replicas == 1:
        return next(able, None)
    others = Counter(fleet.hosting(replica.group.name))
    others.subtract((fleet.hosts[source],))
    nodes = [fleet.nodes[name] for name in others.elements()]
    return min(able, key=lambda server: crowding(replica.group, fleet.nodes[fleet.hosts[server]], nodes), default=None)


def _takes(fleet: RunningFleet, replica: Replica, server: str) -> bool:
    state = fleet.state
    here = [*fleet.on_cpu[server], *(state.items[number].replica for number in fleet.items[server])]
    node = fleet.nodes[fleet.hosts[server]]
    apart = all(other.group.name != replica.group.name for other in here)
    size = sum(other.group.size for other in here) + replica.group.size
    fits = size <= fleet.facts.placed_bytes
    return apart and fits and node.schedulable and replica.group.runs_on(node)


def _is_ordered(moves: Iterable[Move]) -> bool:
    """Return whether moves can be done in an order in which none waits for a later one: no circle of servers."""
    targets: dict[str, set[str]] = {}
    for move in moves:
        targets.setdefault(move.source, set()).add(move.target)
    try:
        TopologicalSorter(targets).prepare()
    except CycleError:
        return False
    return True


def perform(fleet: RunningFleet, emptied: str, moves: Iterable[Move], after: Slots) -> None:
    """Change a fleet to what it is once a server's moves are done. What was moved stays there: no later step moves it
    again. `after`: where the moved items are then.
    """
    state = fleet.state
    targets = {(move.group, move.source): move.target for move in moves}
    sources = {number: fleet.owners[state.slots[number][0][0]] for number in after}
    for number, source in sources.items():
        fleet.items[source].discard(number)
        state.take(state.items[number])
    for number, slots in after.items():
        state.put(state.items[number], slots)
        fleet.add(number, targets[state.items[number].group, sources[number]])
    fleet.fixed.update(after)
    for replica in fleet.on_cpu[emptied]:
        target = targets[replica.group.name, emptied]
        fleet.on_cpu[target].append(replica)
        fleet.held.add(target)
    fleet.close(emptied)

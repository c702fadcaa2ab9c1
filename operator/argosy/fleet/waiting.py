"""What must wait: a model for the memory, or a server for the GPUs, of what has not left yet."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from argosy.fleet.facts import CurrentServer, Node
from argosy.fleet.observed import Observed
from argosy.fleet.occupancy import Occupant, memory_of, needs, taken
from argosy.fleet.plan import Placement, ServerPlan

Seat = tuple[str, str]
"""A server and a model or ensemble on it."""
Waits = dict[Seat, frozenset[Seat]]
"""What waits, and for what to leave."""


def waiting(
    servers: Sequence[ServerPlan],
    leavers: Sequence[CurrentServer],
    occupants: Mapping[str, Sequence[Occupant]],
    nodes: Mapping[str, Node],
    observed: Observed,
    coming: Collection[Seat],
    running: Collection[str],
) -> Waits:
    """What of the planned `servers` waits for the `occupants`, those that leave, by server.

    `leavers` are servers that are no longer planned; a server among `running` does not wait for them. `coming` are
    seats whose model has still to be loaded though an earlier form of it is there.
    """
    found: Waits = {}
    for server in servers:
        rivals = frozenset(_rivals(server, leavers, occupants) if server.name not in running else ())
        if rivals:
            found.update({(server.name, placement.model): rivals for placement in server.placements})
        elif occupants.get(server.name) and server.node in nodes:
            found.update(_for_memory(server, occupants[server.name], nodes[server.node], observed, coming))
    return found


def _rivals(
    server: ServerPlan, leavers: Iterable[CurrentServer], occupants: Mapping[str, Sequence[Occupant]]
) -> Iterator[Seat]:
    """What is still on servers whose GPUs this one is to have."""
    for other in leavers:
        if other.node == server.node and set(other.gpus) & set(server.gpus):
            yield from ((other.name, each.name) for each in occupants.get(other.name, ()))


def _for_memory(
    server: ServerPlan,
    occupants: Sequence[Occupant],
    node: Node,
    observed: Observed,
    coming: Collection[Seat],
) -> Iterator[tuple[Seat, frozenset[Seat]]]:
    memory, held = memory_of(node), observed.held(server.name)
    used = taken(occupants, memory)
    leaving = set(used)
    later: list[Placement] = []
    for placement in server.placements:
        if placement.model in held and (server.name, placement.model) not in coming:
            _add(used, placement, memory)
        else:
            later.append(placement)
    for placement in sorted(later, key=lambda each: (-each.memory, each.model)):
        tight = {gpu for gpu in placement.gpus if gpu in leaving and _exceeds(used, placement, gpu, memory)}
        if tight:
            names = (each.name for each in occupants if tight & set(each.gpus))
            yield (server.name, placement.model), frozenset((server.name, name) for name in names)
        else:
            _add(used, placement, memory)


def _exceeds(used: Mapping[int, int], placement: Placement, gpu: int, memory: Mapping[int, int]) -> bool:
    capacity = memory.get(gpu, 0)
    return placement.whole or used.get(gpu, 0) + needs(placement, capacity) > capacity


def _add(used: dict[int, int], placement: Placement, memory: Mapping[int, int]) -> None:
    for gpu in placement.gpus:
        used[gpu] = used.get(gpu, 0) + needs(placement, memory.get(gpu, 0))

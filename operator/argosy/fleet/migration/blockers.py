"""What must wait: a model for the memory, or a server for the GPUs, of what has not left yet."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from argosy.fleet.facts import CurrentServer
from argosy.fleet.migration.memory_budget import Room
from argosy.fleet.migration.observed import Seat
from argosy.fleet.migration.occupancy import Occupant
from argosy.fleet.plan import ServerPlan

Waits = dict[Seat, frozenset[Seat]]
"""What waits, and for what to leave."""


def waiting(
    servers: Sequence[ServerPlan],
    leavers: Sequence[CurrentServer],
    occupants: Mapping[str, Sequence[Occupant]],
    rooms: Mapping[str, Room],
    running: Collection[str],
) -> Waits:
    """What of the planned `servers` that is not there yet waits, and for which of the `occupants`, by server.

    `leavers` are servers that are no longer planned; a server among `running` does not wait for them.
    """
    found: Waits = {}
    for server in servers:
        rivals = frozenset(_rivals(server, leavers, occupants) if server.name not in running else ())
        if rivals:
            found.update({(server.name, placement.model): rivals for placement in server.placements})
        elif server.name in rooms:
            found.update(_for_memory(rooms[server.name]))
    return found


def _rivals(
    server: ServerPlan, leavers: Iterable[CurrentServer], occupants: Mapping[str, Sequence[Occupant]]
) -> Iterator[Seat]:
    """What is still on servers whose GPUs this one is to have."""
    for other in leavers:
        if other.node == server.node and set(other.gpus) & set(server.gpus):
            yield from ((other.name, each.name) for each in occupants.get(other.name, ()))


def _for_memory(room: Room) -> Iterator[tuple[Seat, frozenset[Seat]]]:
    server = room.server.name
    for name, blocked in room.blocked.items():
        if blocked.change.before is None:
            yield (server, name), frozenset((server, rival) for rival in blocked.rivals)

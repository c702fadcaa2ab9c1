"""A new form of a model loads beside the old one if the GPU's memory, headroom included, holds both.

Where it does not, it takes the old one's place, on one server after the other, while the others go on serving. A model
that serves nowhere else keeps its old form: what serves is not taken down for what may not load. Where it is others
that leave or change, it keeps the old form until they have.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.fleet.amounts import gib
from argosy.fleet.demand.members import Members, Places
from argosy.fleet.migration.blockers import Waits
from argosy.fleet.migration.memory_budget import Blocked, Room, Shortage
from argosy.fleet.migration.observed import Observed, Seat
from argosy.fleet.plan import ServerPlan


@dataclass(slots=True)
class Successions:
    """`swaps`: what is unloaded first, so that its successor finds room. `held`: what keeps its form, and why.

    `later`: what keeps it until others have made room.
    """

    swaps: set[Seat] = field(default_factory=set)
    held: dict[Seat, str] = field(default_factory=dict)
    later: Waits = field(default_factory=dict)


def successions(
    rooms: Mapping[str, Room], members: Members, places: Places, observed: Observed, unrouted: Iterable[Seat]
) -> Successions:
    """How every new form for which there is no room beside the old one gets its place.

    `unrouted` are swaps that were begun; they go on before others begin.
    """
    begun = set(unrouted)
    found = Successions()
    tight = {
        (server, name): each
        for server, room in rooms.items()
        for name, each in room.blocked.items()
        if each.change.before is not None
    }
    for seat in sorted(tight, key=lambda each: (each not in begun, each)):
        server, name = seat
        blocked, together = tight[seat], {(server, each) for each in with_users(name, observed, server)}
        if blocked.swaps and all(
            _served_elsewhere(each, server, members, places, observed, found.swaps) for _, each in together
        ):
            found.swaps |= together
        elif blocked.shortage is not None:
            found.held[seat] = _why(rooms[server].server, blocked, blocked.shortage)
        else:
            found.later[seat] = frozenset((server, each) for each in blocked.rivals)
    return found


def with_users(model: str, observed: Observed, server: str) -> set[str]:
    """The model, and the loaded ensembles that run it, be it through others."""
    found, held = {model}, observed.held(server)
    while more := {each.name for each in held.values() if found & set(each.steps)} - found:
        found |= more
    return found


def _why(server: ServerPlan, blocked: Blocked, short: Shortage) -> str:
    version, versions = blocked.change.placement.version, blocked.change.versions
    old = ", ".join(map(str, sorted(versions)))
    what = (
        f"the new configuration of version {version} does not fit beside the one that serves"
        if version in versions
        else f"version {version} does not fit beside version {old}, which goes on serving"
    )
    return (
        f"{what}: it needs {gib(short.need)} on GPU {short.gpu} of node {server.node}, where {gib(short.free)} are "
        "free beside all that is loaded. Raise minReplicas to 2 until it has changed, so that one replica changes "
        "while the other serves; or lower footprint.gpuMemory"
    )


def _served_elsewhere(
    name: str, server: str, members: Members, places: Places, observed: Observed, swaps: set[Seat]
) -> bool:
    """Whether every other place is reached and stays."""
    others = [each for each in places.servers.get(name, ()) if each != server]
    if not others and not members.declares(name):
        return True
    return bool(others) and all(observed.reachable(o, name) and (o, name) not in swaps for o in others)

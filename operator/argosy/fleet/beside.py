"""A new version loads beside the old one if the GPU's memory, headroom included, holds both.

Where it does not, it takes the old one's place, on one server after the other, while the others go on serving. A model
that serves nowhere else keeps its old version: what serves is not taken down for what may not load.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from argosy.fleet.amounts import gib
from argosy.fleet.facts import Node
from argosy.fleet.members import Members, Places
from argosy.fleet.observed import Observed
from argosy.fleet.occupancy import Occupant, memory_of, needs, taken
from argosy.fleet.plan import Placement, ServerPlan
from argosy.fleet.waiting import Seat


@dataclass(slots=True)
class Successions:
    """`swaps`: what is unloaded first, so that its successor finds room. `held`: what keeps its version, and why."""

    swaps: set[Seat] = field(default_factory=set)
    held: dict[Seat, str] = field(default_factory=dict)


def successions(
    servers: Sequence[ServerPlan],
    members: Members,
    places: Places,
    observed: Observed,
    nodes: Mapping[str, Node],
    occupants: Mapping[str, Sequence[Occupant]],
    unrouted: Iterable[Seat],
) -> Successions:
    """How every new version for which there is no room beside the old one gets its place.

    `unrouted` are swaps that were begun; they go on before others begin.
    """
    begun = set(unrouted)
    found = Successions()
    tight = [seat for server in servers for seat in _tight(server, observed, nodes, occupants.get(server.name, ()))]
    for server, model, why in sorted(tight, key=lambda each: (each[:2] not in begun, each[:2])):
        together = {(server, name) for name in _with_users(model, observed, server)}
        if all(_served_elsewhere(name, server, members, places, observed, found.swaps) for _, name in together):
            found.swaps |= together
        else:
            found.held[server, model] = why
    return found


def _tight(
    server: ServerPlan, observed: Observed, nodes: Mapping[str, Node], occupants: Sequence[Occupant]
) -> Iterator[tuple[str, str, str]]:
    """The models whose declared version finds no room beside those that are loaded: server, model, why."""
    held = observed.held(server.name)
    for placement in server.placements:
        loaded = held.get(placement.model)
        if loaded is None or placement.version in loaded.versions or server.node not in nodes:
            continue
        short = _short(server, placement, len(loaded.versions), memory_of(nodes[server.node]), occupants)
        if short:
            old = ", ".join(map(str, sorted(loaded.versions)))
            yield server.name, placement.model, _why(server, placement, old, short)


def _short(
    server: ServerPlan, placement: Placement, loaded: int, memory: Mapping[int, int], occupants: Sequence[Occupant]
) -> tuple[int, int, int] | None:
    """The first GPU that has too little: its index, what the new version needs there, and what is free for it."""
    others = taken(occupants, memory)
    for gpu in placement.gpus:
        capacity = memory.get(gpu, 0)
        need = needs(placement, capacity)
        beside = sum(needs(p, capacity) for p in server.placements if gpu in p.gpus and p.model != placement.model)
        free = capacity - beside - others.get(gpu, 0) - loaded * need
        if need > free:
            return gpu, need, max(0, free)
    return None


def _why(server: ServerPlan, placement: Placement, old: str, short: tuple[int, int, int]) -> str:
    gpu, need, free = short
    return (
        f"version {placement.version} does not fit beside version {old}, which goes on serving: it needs {gib(need)} "
        f"on GPU {gpu} of node {server.node}, where {gib(free)} are free beside all that is loaded. Raise minReplicas "
        "to 2 until it has changed, so that one replica changes while the other serves; or lower "
        "footprint.gpuMemory"
    )


def _with_users(model: str, observed: Observed, server: str) -> set[str]:
    """The model, and the loaded ensembles that run it, be it through others."""
    found, held = {model}, observed.held(server)
    while more := {each.name for each in held.values() if found & set(each.steps)} - found:
        found |= more
    return found


def _served_elsewhere(
    name: str, server: str, members: Members, places: Places, observed: Observed, swaps: set[Seat]
) -> bool:
    """Whether every other place is reached and stays."""
    others = [each for each in places.servers.get(name, ()) if each != server]
    if not others and not members.declares(name):
        return True
    return bool(others) and all(observed.reachable(o, name) and (o, name) not in swaps for o in others)

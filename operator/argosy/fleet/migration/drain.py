"""What leaves a server: it goes when it is available where it should be, and no sooner; then it is drained.

A model that moves stays routed where it was until every new place of it is reachable, and for as long as endpoints
take to follow. Then it is no longer routed to, and after the drain it is unloaded. So it is with one that moves to
another pool. What nobody declares any more is drained at once. What is declared and has no place, or no valid form,
stays: what serves goes on serving, and others wait. Of those that wait for each other one has to go.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from argosy.fleet.cycles import find_cycle
from argosy.fleet.demand.members import Members, Places
from argosy.fleet.facts import CurrentServer, Node
from argosy.fleet.migration.blockers import Waits, waiting
from argosy.fleet.migration.changes import Present
from argosy.fleet.migration.memory_budget import Room
from argosy.fleet.migration.observed import Observed, Seat
from argosy.fleet.migration.occupancy import Occupant, memory_of, seats
from argosy.fleet.migration.surge import Successions, successions, with_users
from argosy.fleet.plan import PoolPlan, ServerPlan
from argosy_runtime.agent.contract import RenderedModel


class Fate(Enum):
    """What becomes of something that the plan does not have where it is."""

    STAYS = "until its new places are reachable, or as long as it has none"
    FOLLOWS = "its new places are reachable"
    GOES = "nobody needs it here"


@dataclass(frozen=True, slots=True)
class Note:
    """What a status says of a model on a server; `stuck`: waiting does not change it."""

    message: str
    stuck: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """One pool as it is decided on. `current` are its servers as they are, `nodes` those that are up, by name.

    `forms`: by planned server and name, what it would hold next if there were room for all of it.
    """

    plan: PoolPlan
    members: Members
    places: Places
    observed: Observed
    current: Sequence[CurrentServer]
    nodes: Mapping[str, Node]
    forms: Mapping[str, Mapping[str, RenderedModel]] = field(default_factory=dict)


@dataclass(slots=True)
class Departures:
    """What is decided.

    By server: `kept`, what stays loaded beside the planned; `unrouted`, what is not to be reached; `withheld`, what
    of the planned is not to be loaded yet; `held`, what keeps the form it has. `servers`: those that are not planned
    and stay; `pending`: planned ones that wait for GPUs. `since`: when each leaver (`server/name`) is or was taken
    from the routes. `wake`: when the next step is due.
    """

    kept: dict[str, set[str]] = field(default_factory=dict)
    unrouted: dict[str, set[str]] = field(default_factory=dict)
    withheld: dict[str, set[str]] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)
    servers: tuple[ServerPlan, ...] = ()
    pending: frozenset[str] = frozenset()
    since: dict[str, datetime] = field(default_factory=dict)
    wake: datetime | None = None
    notes: dict[Seat, Note] = field(default_factory=dict)


def departures(scene: Scene, before: Mapping[str, datetime], now: datetime, drain: timedelta) -> Departures:
    """Who stays, who goes, who waits. `before` is the last answer's `since`."""
    leavers = _leavers(scene)
    extras = _extras(scene, leavers)
    occupants = _occupants(scene, extras)
    rooms = _rooms(scene, occupants)
    changes = successions(rooms, scene.members, scene.places, scene.observed, map(_seat, before))
    fates = {(server, name): _fate(scene, server, name) for server, names in extras.items() for name in names}
    fates.update(dict.fromkeys(changes.swaps, Fate.FOLLOWS))
    waits = waiting(scene.plan.servers, leavers, occupants, rooms, {server.name for server in scene.current})
    found = Departures(notes={seat: Note(why, stuck=True) for seat, why in changes.held.items()})
    _give_way(scene, fates, waits, changes, found.notes)
    for seat, fate in sorted(fates.items(), key=lambda each: each[0]):
        _schedule(scene, seat, fate, before.get("/".join(seat)), now, drain, found)
    _keep_steps(scene, found)
    _withhold(scene, changes, waits, found)
    _settle_servers(scene, leavers, waits, found)
    return found


def _withhold(scene: Scene, changes: Successions, waits: Waits, found: Departures) -> None:
    """What is not loaded yet, or stays in the form it has."""
    for server, name in (*changes.held, *changes.later):
        found.held.setdefault(server, set()).add(name)
    for seat, awaited in changes.later.items():
        found.notes.setdefault(seat, Note(_waits_for(scene, seat[0], awaited, changes.swaps)))
    for (server, name), awaited in [*waits.items(), *((seat, frozenset({seat})) for seat in changes.swaps)]:
        found.withheld.setdefault(server, set()).add(name)
        found.notes.setdefault((server, name), Note(_waits_for(scene, server, awaited, changes.swaps)))


def _leavers(scene: Scene) -> list[CurrentServer]:
    """The servers that run on nodes that are up, and are not planned."""
    planned = {server.name for server in scene.plan.servers}
    return [each for each in scene.current if each.name not in planned and each.node in scene.nodes]


def _extras(scene: Scene, leavers: Iterable[CurrentServer]) -> dict[str, set[str]]:
    """What each server has loaded and is not to have. A server that is restarted with other GPUs loses it anyway."""
    running = {each.name: (each.node, each.gpus) for each in scene.current}
    found = {server.name: set(scene.observed.held(server.name)) for server in leavers}
    for server in scene.plan.servers:
        if running.get(server.name) == (server.node, server.gpus):
            found[server.name] = set(scene.observed.held(server.name)) - scene.places.names[server.name]
    return {server: names for server, names in found.items() if names}


def _occupants(scene: Scene, extras: Mapping[str, Iterable[str]]) -> dict[str, list[Occupant]]:
    gpus = {server.name: server.gpus for server in scene.current}
    return {
        server: [_occupant(scene, server, name, gpus[server]) for name in sorted(names)]
        for server, names in extras.items()
    }


def _occupant(scene: Scene, server: str, name: str, gpus: tuple[int, ...]) -> Occupant:
    model = scene.observed.held(server)[name]
    return Occupant.of(name, model.versions.values(), seats(model, gpus), scene.members)


def _rooms(scene: Scene, occupants: Mapping[str, Sequence[Occupant]]) -> dict[str, Room]:
    """Each planned server's memory. One that is restarted with other GPUs has nothing yet."""
    running = {each.name: (each.node, each.gpus) for each in scene.current}
    rooms: dict[str, Room] = {}
    for server in scene.plan.servers:
        if server.node in scene.nodes:
            stays = running.get(server.name) == (server.node, server.gpus)
            held = scene.observed.held(server.name) if stays else {}
            present = Present.of(server, held, scene.forms[server.name], scene.members, scene.observed)
            room = Room(server, memory_of(scene.nodes[server.node]), present, occupants.get(server.name, ()))
            room.admit()
            rooms[server.name] = room
    return rooms


def _fate(scene: Scene, server: str, name: str) -> Fate:
    members, places = scene.members, scene.places
    steps = scene.observed.held(server)[name].steps
    if not all(members.knows(each) for each in (name, *steps)):
        return Fate.GOES
    if not members.declares(name):
        return Fate.FOLLOWS if members.elsewhere[name] else Fate.STAYS
    if name in members.broken:
        return Fate.STAYS
    new = places.servers.get(name, ())
    if not new:
        return Fate.STAYS if name in places.homeless else Fate.GOES
    return Fate.FOLLOWS if all(_available(scene, each, name) for each in new) else Fate.STAYS


def _available(scene: Scene, server: str, name: str) -> bool:
    version = scene.members.version(name)
    ready = version is not None and scene.observed.is_ready(server, name, version)
    return ready and scene.observed.reachable(server, name)


def _give_way(
    scene: Scene, fates: dict[Seat, Fate], waits: Waits, changes: Successions, notes: dict[Seat, Note]
) -> None:
    """One leaves of those that wait for each other, until none do; if all are to stay, one is loaded anew."""
    while circle := find_cycle(_dependences(scene, fates, waits, changes.later)):
        leavers = [each for each in circle if fates.get(each) is Fate.STAYS]
        server, name = min(leavers or [each for each in circle if each in changes.later])
        together = {name} if leavers else with_users(name, scene.observed, server)
        for seat in sorted((server, each) for each in together):
            fates[seat] = Fate.GOES
            _note_early(scene, seat, notes)
            if not leavers:
                changes.later.pop(seat, None)
                changes.swaps.add(seat)


def _note_early(scene: Scene, seat: Seat, notes: dict[Seat, Note]) -> None:
    """Say where it should be why something left before its time."""
    for place in scene.places.servers.get(seat[1], ()):
        message = f"it left {seat[0]} before it was loaded here, because others waited for its room"
        notes[place, seat[1]] = Note(message)


def _dependences(scene: Scene, fates: Mapping[Seat, Fate], waits: Waits, later: Waits) -> dict[Seat, tuple[Seat, ...]]:
    """A leaver needs its new places; a place that waits, and a new form of what is there, need others' room."""
    edges = {seat: tuple(sorted(awaited)) for seat, awaited in sorted(later.items())}
    for server, name in sorted(seat for seat, fate in fates.items() if fate is Fate.STAYS):
        models = scene.members.runs.get(name, (name,))
        new = [(place, model) for place in scene.places.servers.get(name, ()) for model in models]
        edges[server, name] = tuple(sorted({seat for each in new for seat in waits.get(each, ())}))
    return edges


def _schedule(
    scene: Scene, seat: Seat, fate: Fate, before: datetime | None, now: datetime, drain: timedelta, found: Departures
) -> None:
    """Put one leaver where it stands in time: routed, draining or gone."""
    server, name = seat
    if fate is Fate.STAYS:
        found.kept.setdefault(server, set()).add(name)
        return
    since = before if before is not None else now + (drain / 2 if fate is Fate.FOLLOWS else timedelta())
    if scene.observed.routed(server, name):
        since = max(since, now)  # what should have taken it from the routes failed: the drain begins only then
    if fate is Fate.GOES:
        since = min(since, now)
        if not scene.observed.serves(server, name):
            since = min(since, now - drain)  # nothing to drain
    found.since["/".join(seat)] = since
    if now >= since:
        found.unrouted.setdefault(server, set()).add(name)
    if now < since + drain:
        found.kept.setdefault(server, set()).add(name)
        due = since if now < since else since + drain
        found.wake = min(due, found.wake or due)


def _keep_steps(scene: Scene, found: Departures) -> None:
    """An ensemble that is kept keeps the models that it runs."""
    for server, names in found.kept.items():
        held = scene.observed.held(server)
        while steps := {step for name in names for step in held[name].steps if step in held} - names:
            names |= steps


def _waits_for(scene: Scene, server: str, awaited: Iterable[Seat], swaps: Collection[Seat]) -> str:
    there = sorted(awaited)
    names = ", ".join(name for _, name in there[:3]) + (" and others" if len(there) > 3 else "")
    stay = all(each[1] in scene.places.names.get(each[0], ()) and each not in swaps for each in there)
    where = there[0][0] if there[0][0] != server else "this server"
    return f"it waits until {names} has {'changed on' if stay else 'left'} {where}"


def _settle_servers(scene: Scene, leavers: Iterable[CurrentServer], waits: Waits, found: Departures) -> None:
    """The servers that stay without being planned, and the planned ones whose GPUs are not free yet."""
    running = {server.name for server in scene.current}
    stay = [each for each in leavers if found.kept.get(each.name)]
    held = {(each.node, gpu) for each in stay for gpu in each.gpus}
    found.pending = frozenset(
        server.name
        for server in scene.plan.servers
        if server.name not in running and held & {(server.node, gpu) for gpu in server.gpus}
    )
    grown = {(s.node, g) for s in scene.plan.servers if s.name not in found.pending for g in s.gpus}
    ousted = {each.name for each in stay if grown & {(each.node, gpu) for gpu in each.gpus}}
    for leaver in sorted(ousted):
        for name in sorted(found.kept[leaver]):
            _note_early(scene, (leaver, name), found.notes)
    found.servers = tuple(ServerPlan(each.name, each.node, each.gpus, ()) for each in stay if each.name not in ousted)


def _seat(key: str) -> Seat:
    server, _, name = key.partition("/")
    return server, name

"""One round of a pool's way from what runs to what is planned: who stays, who drains, who waits."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.blockers import Blockers, blockers_of
from argosy.planning.migration.changes.recreation import asks_to_recreate
from argosy.planning.migration.changes.surge import Surges, surges
from argosy.planning.migration.deadlock import break_deadlocks, note_early
from argosy.planning.migration.documents import awaiting_room
from argosy.planning.migration.drain import Drain, drain_of, schedule
from argosy.planning.migration.memory.budget import MemoryBudget
from argosy.planning.migration.memory.changes import ServerChanges
from argosy.planning.migration.memory.occupancy import Occupant, memory_of, node_gpus
from argosy.planning.migration.state import Migration, Note, PoolState
from argosy.planning.plan import ServerPlan

DRAIN_PERIOD = timedelta(seconds=10)
"""From when a model is no longer routed to, until it is unloaded: endpoints have to propagate, requests to end."""


def migrate(
    state: PoolState, before: Mapping[Binding, datetime], now: datetime, period: timedelta = DRAIN_PERIOD
) -> Migration:
    """Return the next step. `before` is the last answer's `drain_since`."""
    surplus = occupants_of(state)
    budgets = budgets_of(state, surplus)
    changes, crowded = surges(state, budgets, before), awaiting_room(state)
    for (server, name), awaited in crowded.items():
        if name in state.observed.held(server) and (server, name) not in changes.recreated | changes.deferred.keys():
            changes.deferred[server, name] = awaited
            changes.crowded.add((server, name))
    drains = {
        (server, each.name): drain_of(state, (server, each.name)) for server in surplus for each in surplus[server]
    }
    drains.update(dict.fromkeys(changes.recreated, Drain.AFTER_HANDOVER))
    blockers = blockers_of(state, surplus, budgets)
    loaded = changes.deferred.keys() | changes.recreated
    blockers.update({each: why for each, why in crowded.items() if each not in loaded | blockers.keys()})
    found = Migration(
        notes={binding: Note(why, stuck=True) for binding, why in changes.stuck.items()},
        declared_only={server: names for server, each in budgets.items() if (names := _declared_only(state, each))},
    )
    break_deadlocks(state, drains, blockers, changes, found.notes)
    schedule(state, drains, before, now, period, found)
    _defer(state, changes, blockers, found)
    _settle_servers(state, found)
    return found


def occupants_of(state: PoolState) -> dict[str, list[Occupant]]:
    """Return what is loaded and not planned, by server."""
    return {
        server: [_occupant(state, server, name) for name in sorted(names)] for server, names in state.surplus().items()
    }


def _occupant(state: PoolState, server: str, name: str) -> Occupant:
    form = state.observed.held(server)[name]
    return Occupant.of(name, form.versions.values(), node_gpus(form, state.current[server].gpus), state.members)


def budgets_of(state: PoolState, surplus: Mapping[str, Sequence[Occupant]]) -> dict[str, MemoryBudget]:
    """Return each planned server's memory. One that starts anew, with other GPUs, has nothing loaded yet."""
    found: dict[str, MemoryBudget] = {}
    for server in state.plan.servers:
        if server.node in state.nodes:
            held = state.observed.held(server.name) if state.keeps_its_gpus(server) else {}
            changes = ServerChanges.of(server, held, state.targets[server.name], state.members, state.observed)
            budget = MemoryBudget(server, memory_of(state.nodes[server.node]), changes, surplus.get(server.name, ()))
            budget.admit()
            found[server.name] = budget
    return found


def _declared_only(state: PoolState, budget: MemoryBudget) -> set[str]:
    """What is loaded without versions that served before: for want of memory, or as its strategy says."""
    coming = {each.placement.model for each in budget.changes.changes if each.before is None}
    return budget.declared_only | {name for name in coming if asks_to_recreate(state.members, name)}


def _defer(state: PoolState, changes: Surges, blockers: Blockers, found: Migration) -> None:
    """What is not loaded yet, or stays in the form it has."""
    for server, name in (*changes.stuck, *changes.deferred):
        found.former.setdefault(server, set()).add(name)
    for binding, awaited in changes.deferred.items():
        found.notes.setdefault(binding, Note(_waits_for(state, binding[0], awaited, changes)))
    own = ((binding, frozenset({binding})) for binding in changes.recreated)
    for (server, name), awaited in (*blockers.items(), *own):
        found.deferred.setdefault(server, set()).add(name)
        found.notes.setdefault((server, name), Note(_waits_for(state, server, awaited, changes)))


def _waits_for(state: PoolState, server: str, awaited: Iterable[Binding], changes: Surges) -> str:
    there = sorted(awaited)
    names = ", ".join(name for _, name in there[:3]) + (" and others" if len(there) > 3 else "")
    stay = all(each[1] in state.bindings.names.get(each[0], ()) and each not in changes.recreated for each in there)
    where = there[0][0] if there[0][0] != server else "this server"
    stuck = next((f"; {each[1]} waits too: {changes.stuck[each]}" for each in there if each in changes.stuck), "")
    return f"it waits until {names} has {'changed on' if stay else 'left'} {where}{stuck}"


def _settle_servers(state: PoolState, found: Migration) -> None:
    """The servers that stay without being planned, and the planned ones whose GPUs are not free yet.

    One that runs and gets other GPUs does not wait: what drains there is preempted.
    """
    stay = [each for each in state.draining_servers() if found.kept.get(each.name)]
    held = {(each.node, gpu) for each in stay for gpu in each.gpus}
    found.waiting = frozenset(
        server.name
        for server in state.plan.servers
        if server.name not in state.current and held & {(server.node, gpu) for gpu in server.gpus}
    )
    claimed = {(s.node, g) for s in state.plan.servers if s.name not in found.waiting for g in s.gpus}
    preempted = {each.name for each in stay if claimed & {(each.node, gpu) for gpu in each.gpus}}
    for server in sorted(preempted):
        for name in sorted(found.kept[server]):
            note_early(state, (server, name), found.notes)
    found.draining = tuple(
        ServerPlan(each.name, each.node, each.gpus, ()) for each in stay if each.name not in preempted
    )

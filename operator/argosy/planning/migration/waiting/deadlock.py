"""Deadlocks of bindings that wait for each other in a circle: one gives way, until there is none."""

from collections.abc import Mapping

from argosy.planning.cycles import find_cycle
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.blockers import Blockers
from argosy.planning.migration.changes.recreation import asks_to_surge
from argosy.planning.migration.changes.surge import SURGES, SURGES_IN_DOCUMENTS, Surges
from argosy.planning.migration.drain import Drain
from argosy.planning.migration.state import Note, PoolState


def break_deadlocks(
    state: PoolState, drains: dict[Binding, Drain], blockers: Blockers, changes: Surges, notes: dict[Binding, Note]
) -> None:
    """Break each cycle of models that wait for each other. A model that leaves its server leaves early; otherwise one
    is recreated, or keeps its revision if all are declared to surge.

    The loaded ensembles that run it leave or change with it. Changes `drains`, `changes` and `notes`.
    """
    while circle := find_cycle(_dependences(state, drains, blockers, changes.deferred)):
        surplus = [binding for binding in circle if drains.get(binding) is Drain.NOT_YET]
        staying = [
            (asks_to_surge(state.members, binding[1]), binding) for binding in circle if binding in changes.deferred
        ]
        surges, (server, name) = (False, min(surplus)) if surplus else min(staying)
        if surges:
            del changes.deferred[server, name]
            why = SURGES_IN_DOCUMENTS if (server, name) in changes.crowded else SURGES
            changes.stuck[server, name] = why
            notes[server, name] = Note(why, stuck=True)
            continue
        together = state.observed.bindings_with_users((server, name))
        if surplus:
            together &= drains.keys()
        for binding in sorted(together):
            drains[binding] = Drain.AT_ONCE
            note_early(state, binding, notes)
            if not surplus:
                changes.deferred.pop(binding, None)
                changes.recreated.add(binding)


def note_early(state: PoolState, binding: Binding, notes: dict[Binding, Note]) -> None:
    """Note on each planned server why a binding left before its successor was reached."""
    for planned in state.bindings.servers.get(binding[1], ()):
        message = f"it left {binding[0]} before it was loaded here, because others waited for its room"
        notes[planned, binding[1]] = Note(message)


def _dependences(
    state: PoolState, drains: Mapping[Binding, Drain], blockers: Blockers, deferred: Blockers
) -> dict[Binding, tuple[Binding, ...]]:
    """Return what each binding depends on.

    A binding that drains needs its successors; a successor that waits, and a new revision, need memory of others.
    """
    edges = {binding: tuple(sorted(awaited)) for binding, awaited in sorted(deferred.items())}
    for server, name in sorted(binding for binding, drain in drains.items() if drain is Drain.NOT_YET):
        models = state.members.models_of(name)
        new = [(planned, model) for planned in state.bindings.servers.get(name, ()) for model in models]
        edges[server, name] = tuple(sorted({binding for waiting in new for binding in blockers.get(waiting, ())}))
    return edges

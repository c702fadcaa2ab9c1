"""One round of a pool's migration: from what runs to what is planned, in steps that keep serving."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from argosy.api.values.reuse import RoundCache
from argosy.planning.demand.members import Members
from argosy.planning.facts import Node, PoolFacts
from argosy.planning.migration.bindings import Binding, PlannedBindings
from argosy.planning.migration.blockers import Blockers, blockers_of
from argosy.planning.migration.changes.recreation import asks_to_recreate
from argosy.planning.migration.changes.rollback import taken_back
from argosy.planning.migration.changes.surge import Surges, surges
from argosy.planning.migration.disruption import Disruption, limited
from argosy.planning.migration.drain import Drain, drain_of, schedule
from argosy.planning.migration.memory.budget import MemoryBudget
from argosy.planning.migration.memory.changes import ServerChanges
from argosy.planning.migration.memory.occupancy import Occupant, memory_of, node_gpus
from argosy.planning.migration.next_step import ServerStep, server_steps
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import ReloadKeys
from argosy.planning.migration.state import Migration, Note, PoolState
from argosy.planning.migration.waiting.deadlock import break_deadlocks, note_early
from argosy.planning.migration.waiting.documents import awaiting_document_bytes
from argosy.planning.migration.waiting.outranked import awaited_on_cpus, crowded_out, outranked, preempted
from argosy.planning.plan import PoolPlan, ServerPlan

DRAIN_PERIOD = timedelta(seconds=10)
"""From when a model is no longer routed to, until it is unloaded: endpoints have to propagate, requests to end."""


@dataclass(frozen=True, slots=True)
class PoolMigration:
    """The next `steps` of a pool's servers, with the `state` that they follow from.

    `notes`: the reasons why models or ensembles wait on a server. `wake`: when the next step is due without any event.
    `disruption`: the servers that were not stopped because the pool does not allow so many. `drain_period`: what drains
    has so long to end its requests.
    """

    state: PoolState
    steps: tuple[ServerStep, ...] = ()
    notes: Mapping[Binding, Note] = field(default_factory=dict)
    wake: datetime | None = None
    disruption: Disruption | None = None
    drain_period: timedelta = DRAIN_PERIOD

    @classmethod
    def of(
        cls,
        plan: PoolPlan,
        facts: PoolFacts,
        members: Members,
        observed: Observed,
        nodes: Sequence[Node],
        keys: ReloadKeys,
        now: datetime,
        drain_period: timedelta = DRAIN_PERIOD,
        cache: RoundCache | None = None,
    ) -> "PoolMigration":
        """Return the next step of one pool. A suspended pool keeps nothing that is not planned."""
        state = PoolState.of(plan, facts, members, observed, nodes, keys, cache)
        if facts.suspended:
            return cls(state, server_steps(state, Migration(), keys))
        migration = migrate(state, observed.drain_since, now, drain_period)
        disruption = limited(state, migration, facts.max_disruption)
        return cls(
            state, server_steps(state, migration, keys), migration.notes, migration.wake, disruption, drain_period
        )


def migrate(
    state: PoolState, before: Mapping[Binding, datetime], now: datetime, period: timedelta = DRAIN_PERIOD
) -> Migration:
    """Return the next step. `before` is the last answer's `drain_since`."""
    surplus = occupants_of(state)
    budgets = budgets_of(state, surplus)
    changes, crowded = surges(state, budgets, before), awaiting_document_bytes(state)
    for (server, name), awaited in crowded.items():
        if (
            name in state.observed.loaded_on(server)
            and (server, name) not in changes.recreated | changes.deferred.keys()
        ):
            changes.deferred[server, name] = awaited
            changes.crowded.add((server, name))
    drains = {
        (server, occupant.name): drain_of(state, (server, occupant.name))
        for server in surplus
        for occupant in surplus[server]
    }
    drains.update(dict.fromkeys(changes.recreated, Drain.AFTER_HANDOVER))
    drains.update({one: Drain.AT_ONCE for one in taken_back(state) if drains.get(one) is Drain.AFTER_HANDOVER})
    blockers = blockers_of(state, surplus, budgets)
    drains.update(dict.fromkeys(outranked(state, drains, blockers, before), Drain.AT_ONCE))
    drains.update(dict.fromkeys(preempted(state, surplus, drains), Drain.AT_ONCE))
    losers = crowded_out(state, surplus, drains, before)
    drains.update(dict.fromkeys(losers, Drain.AT_ONCE))
    blockers.update(awaited_on_cpus(state, losers))
    loaded = changes.deferred.keys() | changes.recreated
    blockers.update({binding: why for binding, why in crowded.items() if binding not in loaded | blockers.keys()})
    migration = Migration(
        notes={binding: Note(why, stuck=True) for binding, why in changes.stuck.items()},
        declared_only={server: names for server, budget in budgets.items() if (names := _declared_only(state, budget))},
    )
    break_deadlocks(state, drains, blockers, changes, migration.notes)
    schedule(state, drains, before, now, period, migration)
    _defer(state, changes, blockers, migration)
    _settle_servers(state, migration)
    return migration


def occupants_of(state: PoolState) -> dict[str, list[Occupant]]:
    """Return what is loaded and not planned, by server."""
    return {
        server: [_occupant(state, server, name) for name in sorted(names)] for server, names in state.surplus().items()
    }


def _occupant(state: PoolState, server: str, name: str) -> Occupant:
    revision = state.observed.loaded_on(server)[name]
    return Occupant.of(name, revision.versions.values(), node_gpus(revision, state.current[server].gpus), state.members)


def budgets_of(state: PoolState, surplus: Mapping[str, Sequence[Occupant]]) -> dict[str, MemoryBudget]:
    """Return each planned server's memory. One that restarts, with other GPUs, has nothing loaded yet."""
    return {
        server.name: _budget(state, server, surplus.get(server.name, ()))
        for server in state.plan.servers
        if server.node in state.nodes
    }


def _budget(state: PoolState, server: ServerPlan, surplus: Sequence[Occupant]) -> MemoryBudget:
    node, is_loaded = state.nodes[server.node], state.keeps_its_gpus(server)

    def derived(members: Members, _: PlannedBindings, observed: Observed) -> MemoryBudget:
        loaded = observed.loaded_on(server.name) if is_loaded else {}
        changes = ServerChanges.of(server, loaded, state.targets[server.name], members, observed)
        budget = MemoryBudget(server, memory_of(node), changes, surplus)
        budget.admit()
        return budget

    if state.views is None or surplus:
        return derived(state.members, state.bindings, state.observed)
    return state.views.value("budgets", server, (node, is_loaded), derived)


def _declared_only(state: PoolState, budget: MemoryBudget) -> set[str]:
    """Return what is loaded without versions that served before: for want of memory, or as its strategy says."""
    coming = {change.placement.model for change in budget.changes.changes if change.before is None}
    return budget.declared_only | {name for name in coming if asks_to_recreate(state.members, name)}


def _defer(state: PoolState, changes: Surges, blockers: Blockers, migration: Migration) -> None:
    """Defer what is not to be loaded yet, or keeps its revision, with a note on each."""
    for server, name in (*changes.stuck, *changes.deferred):
        migration.former.setdefault(server, set()).add(name)
    for server, name in changes.unloading:
        migration.unloading.setdefault(server, set()).add(name)
    for binding, awaited in changes.deferred.items():
        migration.notes.setdefault(binding, Note(_waits_for(state, binding[0], awaited, changes)))
    own = ((binding, frozenset({binding})) for binding in changes.recreated)
    for (server, name), awaited in (*blockers.items(), *own):
        migration.deferred.setdefault(server, set()).add(name)
        migration.notes.setdefault((server, name), Note(_waits_for(state, server, awaited, changes)))


def _waits_for(state: PoolState, server: str, awaited: Iterable[Binding], changes: Surges) -> str:
    there = sorted(awaited)
    names = ", ".join(name for _, name in there[:3]) + (" and others" if len(there) > 3 else "")
    stay = all(
        binding[1] in state.bindings.names.get(binding[0], ()) and binding not in changes.recreated for binding in there
    )
    where = there[0][0] if there[0][0] != server else "this server"
    stuck = next(
        (f"; {binding[1]} waits too: {changes.stuck[binding]}" for binding in there if binding in changes.stuck), ""
    )
    return f"it waits until {names} has {'changed on' if stay else 'left'} {where}{stuck}"


def _settle_servers(state: PoolState, migration: Migration) -> None:
    """Set the servers that stay without being planned, and the planned ones whose GPUs are not free yet.

    One that runs and gets other GPUs does not wait: what drains there is preempted.
    """
    stay = [server for server in state.draining_servers() if migration.retained.get(server.name)]
    used = {(server.node, gpu) for server in stay for gpu in server.gpus}
    migration.waiting = frozenset(
        server.name
        for server in state.plan.servers
        if server.name not in state.current and used & {(server.node, gpu) for gpu in server.gpus}
    )
    claimed = {(s.node, g) for s in state.plan.servers if s.name not in migration.waiting for g in s.gpus}
    preempted = {server.name for server in stay if claimed & {(server.node, gpu) for gpu in server.gpus}}
    for server in sorted(preempted):
        for name in sorted(migration.retained[server]):
            note_early(state, (server, name), migration.notes)
    migration.draining = tuple(
        ServerPlan(server.name, server.node, server.gpus, ()) for server in stay if server.name not in preempted
    )

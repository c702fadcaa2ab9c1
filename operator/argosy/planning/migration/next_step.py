"""The next step of each server of a pool: what it holds, and what may be reached there."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from argosy.planning.demand.members import Members
from argosy.planning.migration.bindings import PlannedBindings
from argosy.planning.migration.memory.changes import without_leaving
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import ModelRevision, ReloadKeys
from argosy.planning.migration.state import Migration, PoolState
from argosy.planning.migration.versions import target_revisions
from argosy.planning.plan import ServerPlan


@dataclass(frozen=True, slots=True)
class ServerStep:
    """The next step of one server, and the models and ensembles that are routed to it now.

    `as_loaded`: names in `revisions` that stay exactly as loaded. `draining`: the server is no longer planned, and
    stays only until it is drained. `served`: the versions that are ready, or were at its last report. `drain_since`:
    when each draining model was removed from the routes.
    """

    plan: ServerPlan
    revisions: Mapping[str, ModelRevision]
    as_loaded: frozenset[str] = frozenset()
    routes: frozenset[str] = frozenset()
    draining: bool = False
    served: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    drain_since: Mapping[str, datetime] = field(default_factory=dict)


def server_steps(state: PoolState, migration: Migration, keys: ReloadKeys) -> tuple[ServerStep, ...]:
    """Return the planned servers except those that wait for GPUs, followed by the draining ones."""
    planned = [server for server in state.plan.servers if server.name not in migration.waiting]
    since: dict[str, dict[str, datetime]] = {}
    for (server, name), at in migration.drain_since.items():
        since.setdefault(server, {})[name] = at
    return (
        *(_planned_step(server, state, migration, keys, since.get(server.name, {})) for server in planned),
        *(_step(server, state, migration, keys, True, since.get(server.name, {})) for server in migration.draining),
    )


def _planned_step(
    server: ServerPlan, state: PoolState, migration: Migration, keys: ReloadKeys, since: Mapping[str, datetime]
) -> ServerStep:
    """Return the next step of a planned server. Where nothing waits or leaves there, it follows from its view."""

    def derived(members: Members, bindings: PlannedBindings, observed: Observed) -> ServerStep:
        of_server = replace(
            state, members=members, bindings=bindings, observed=observed, targets={server.name: targets}, views=None
        )
        return _step(server, of_server, Migration(), keys, False, {})

    targets = state.targets.get(server.name, {})
    if state.views is None or since or migration.concerns(server.name):
        return _step(server, state, migration, keys, False, since)
    return state.views.value("steps", server, None, derived)


def _step(
    server: ServerPlan,
    state: PoolState,
    migration: Migration,
    keys: ReloadKeys,
    draining: bool,
    since: Mapping[str, datetime],
) -> ServerStep:
    name, observed = server.name, state.observed
    revisions = _revisions(server, state, migration, keys)
    waiting = _waiting_ensembles(server, state, migration, revisions)
    revisions |= waiting
    unrouted = set(migration.unrouted.get(name, ()))
    unrouted |= {ensemble for ensemble, revision in waiting.items() if _runs(revision, waiting) & unrouted}
    routes = frozenset(member for member in revisions if member not in unrouted and observed.serves(name, member))
    loaded = observed.loaded_on(name)
    # by identity: an equal revision may have been loaded with another text
    as_loaded = frozenset(member for member, revision in revisions.items() if revision is loaded.get(member))
    return ServerStep(server, revisions, as_loaded, routes, draining, _served(name, revisions, observed), since)


def _revisions(
    server: ServerPlan, state: PoolState, migration: Migration, keys: ReloadKeys
) -> dict[str, ModelRevision]:
    """Return what the server should hold next, except for ensembles that wait."""
    name, observed = server.name, state.observed
    deferred, retained, former = (
        names_of.get(name, set()) for names_of in (migration.deferred, migration.retained, migration.former)
    )
    revisions = state.targets.get(name, {})
    declared_only = migration.declared_only.get(name, set())
    if deferred or declared_only:
        fitting = target_revisions(server, state.members, state.bindings, observed, keys, deferred, declared_only)
        revisions = {
            member: revision for member, revision in fitting.items() if member not in deferred or member in retained
        }
    loaded = observed.loaded_on(name)
    stays = {member for member in former if member in revisions} | {
        member for member in retained if member not in revisions
    }
    revisions = {**revisions, **{member: loaded[member] for member in stays if member in loaded}}
    for member in migration.unloading.get(name, ()):
        staying = without_leaving(loaded[member], revisions[member]) if member in revisions else None
        revisions = revisions if staying is None else {**revisions, member: staying}
    return _complete(revisions, loaded)


def _complete(revisions: Mapping[str, ModelRevision], loaded: Mapping[str, ModelRevision]) -> dict[str, ModelRevision]:
    """Return the revisions without ensembles that would be loaded and lack a step whose new version waits.

    What is loaded stays.
    """
    complete = dict(revisions)
    while broken := {
        revision.name
        for revision in complete.values()
        if revision is not loaded.get(revision.name) and not all(_has(complete, step, at) for step, at in revision.runs)
    }:
        complete = {name: revision for name, revision in complete.items() if name not in broken}
    return complete


def _waiting_ensembles(
    server: ServerPlan, state: PoolState, migration: Migration, revisions: Mapping[str, ModelRevision]
) -> dict[str, ModelRevision]:
    """Return planned ensembles with a deferred new step: each stays as it is while all that it runs stays."""
    deferred = migration.deferred.get(server.name, set())
    planned = state.bindings.names.get(server.name, frozenset()) - revisions.keys() - deferred
    loaded = state.observed.loaded_on(server.name)
    left = [loaded[ensemble] for ensemble in sorted(planned) if ensemble in loaded and loaded[ensemble].steps]
    waiting: dict[str, ModelRevision] = {}
    there = dict(revisions)
    while complete := [revision for revision in left if all(_has(there, step, at) for step, at in revision.runs)]:
        waiting |= {revision.name: revision for revision in complete}
        there |= waiting
        left = [revision for revision in left if revision.name not in waiting]
    return waiting


def _has(revisions: Mapping[str, ModelRevision], name: str, version: int) -> bool:
    return name in revisions and version in revisions[name].versions


def _runs(ensemble: ModelRevision, ensembles: Mapping[str, ModelRevision]) -> set[str]:
    """Return what an ensemble runs, including what those of `ensembles` run that it runs."""
    names = set(ensemble.step_names)
    while more := {step for member in names & ensembles.keys() for step in ensembles[member].step_names} - names:
        names |= more
    return names


def _served(server: str, revisions: Mapping[str, ModelRevision], observed: Observed) -> dict[str, tuple[int, ...]]:
    """Return the desired versions that are ready on a server, or were at its last report.

    If no server serves a member any more, the versions that other servers had are included: this one replaces them.
    """
    before = observed.served.get(server, {})
    versions_of: dict[str, tuple[int, ...]] = {}
    for revision in revisions.values():
        now = tuple(
            version for version in sorted(revision.versions) if observed.has_ready(server, revision.name, version)
        )
        had = before[revision.name].versions if revision.name in before else _of_others(revision.name, observed)
        if versions := now or tuple(version for version in sorted(revision.versions) if version in had):
            versions_of[revision.name] = versions
    return versions_of


def _of_others(name: str, observed: Observed) -> Collection[int]:
    return observed.sources.get(name, ()) if observed.unserved(name) else ()

"""What each server of a pool should be next: what it holds, and what may be reached there."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.fleet.migration.forms import Form, ReloadKeys
from argosy.fleet.migration.observed import Observed
from argosy.fleet.migration.state import Migration, PoolState
from argosy.fleet.migration.versions import target_forms
from argosy.fleet.plan import ServerPlan


@dataclass(frozen=True, slots=True)
class ServerStep:
    """What one server should be next, and which models and ensembles may be reached there now.

    `as_loaded`: what of `forms` stays just as the server has it. `draining`: the plan has no such server any more; it
    stays where it was, with what it still serves. `served`: the versions that it has ready, or had when it was last
    heard of. `drain_since`: from when what drains there is not routed to.
    """

    plan: ServerPlan
    forms: Mapping[str, Form]
    as_loaded: frozenset[str] = frozenset()
    routes: frozenset[str] = frozenset()
    draining: bool = False
    served: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    drain_since: Mapping[str, datetime] = field(default_factory=dict)


def server_steps(state: PoolState, migration: Migration, keys: ReloadKeys) -> tuple[ServerStep, ...]:
    """The planned servers but for those that wait for GPUs, and then those that drain."""
    planned = [server for server in state.plan.servers if server.name not in migration.waiting]
    since: dict[str, dict[str, datetime]] = {}
    for (server, name), at in migration.drain_since.items():
        since.setdefault(server, {})[name] = at
    return tuple(
        _step(server, state, migration, keys, draining, since.get(server.name, {}))
        for servers, draining in ((planned, False), (migration.draining, True))
        for server in servers
    )


def _step(
    server: ServerPlan,
    state: PoolState,
    migration: Migration,
    keys: ReloadKeys,
    draining: bool,
    since: Mapping[str, datetime],
) -> ServerStep:
    forms, as_loaded = _forms(server, state, migration, keys)
    unrouted = migration.unrouted.get(server.name, ())
    routes = frozenset(name for name in forms if name not in unrouted and state.observed.serves(server.name, name))
    return ServerStep(server, forms, as_loaded, routes, draining, _served(server.name, forms, state.observed), since)


def _forms(
    server: ServerPlan, state: PoolState, migration: Migration, keys: ReloadKeys
) -> tuple[Mapping[str, Form], frozenset[str]]:
    """What the server should hold next, and what of it stays just as it is."""
    name, observed = server.name, state.observed
    deferred, kept, former = (each.get(name, set()) for each in (migration.deferred, migration.kept, migration.former))
    found = state.targets.get(name, {})
    declared_only = migration.declared_only.get(name, set())
    if deferred or declared_only:
        fitting = target_forms(server, state.members, state.places, observed, keys, deferred, declared_only)
        found = {each: form for each, form in fitting.items() if each not in deferred or each in kept}
    held = observed.held(name)
    stays = {each for each in former if each in found} | {each for each in kept if each not in found}
    forms = {**found, **{each: held[each] for each in stays if each in held}}
    return forms, frozenset(each for each, form in forms.items() if form is held.get(each))


def _served(server: str, forms: Mapping[str, Form], observed: Observed) -> dict[str, tuple[int, ...]]:
    """Of what a server is to hold the versions that it has ready, or had when it was last heard of.

    Where nobody serves something any more also those that others had: it takes their place.
    """
    before = observed.served.get(server, {})
    found: dict[str, tuple[int, ...]] = {}
    for form in forms.values():
        now = tuple(version for version in sorted(form.versions) if observed.has_ready(server, form.name, version))
        had = before[form.name].versions if form.name in before else _of_others(form.name, observed)
        if versions := now or tuple(version for version in sorted(form.versions) if version in had):
            found[form.name] = versions
    return found


def _of_others(name: str, observed: Observed) -> Collection[int]:
    return observed.known.get(name, ()) if observed.unserved(name) else ()

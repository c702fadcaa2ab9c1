"""What each server of a pool should be next: what it holds, and what may be reached there."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import Form, ReloadKeys
from argosy.planning.migration.state import Migration, PoolState
from argosy.planning.migration.versions import target_forms
from argosy.planning.plan import ServerPlan


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
    """Return the planned servers but for those that wait for GPUs, and then those that drain."""
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
    name, observed = server.name, state.observed
    forms = _forms(server, state, migration, keys)
    waiting = _waiting_ensembles(server, state, migration, forms)
    forms |= waiting
    unrouted = set(migration.unrouted.get(name, ()))
    unrouted |= {each for each, form in waiting.items() if _runs(form, waiting) & unrouted}
    routes = frozenset(each for each in forms if each not in unrouted and observed.serves(name, each))
    held = observed.held(name)
    # by identity: a form that is only alike may have been loaded with another text
    as_loaded = frozenset(each for each, form in forms.items() if form is held.get(each))
    return ServerStep(server, forms, as_loaded, routes, draining, _served(name, forms, observed), since)


def _forms(server: ServerPlan, state: PoolState, migration: Migration, keys: ReloadKeys) -> dict[str, Form]:
    """What the server should hold next, but for ensembles that wait."""
    name, observed = server.name, state.observed
    deferred, kept, former = (each.get(name, set()) for each in (migration.deferred, migration.kept, migration.former))
    found = state.targets.get(name, {})
    declared_only = migration.declared_only.get(name, set())
    if deferred or declared_only:
        fitting = target_forms(server, state.members, state.bindings, observed, keys, deferred, declared_only)
        found = {each: form for each, form in fitting.items() if each not in deferred or each in kept}
    held = observed.held(name)
    stays = {each for each in former if each in found} | {each for each in kept if each not in found}
    return _whole({**found, **{each: held[each] for each in stays if each in held}}, held)


def _whole(forms: Mapping[str, Form], held: Mapping[str, Form]) -> dict[str, Form]:
    """Without ensembles that would be loaded and lack a step, for its new version waits; what is loaded stays."""
    found = dict(forms)
    while broken := {
        form.name
        for form in found.values()
        if form is not held.get(form.name) and not all(_has(found, step, at) for step, at in form.steps.items())
    }:
        found = {name: form for name, form in found.items() if name not in broken}
    return found


def _waiting_ensembles(
    server: ServerPlan, state: PoolState, migration: Migration, forms: Mapping[str, Form]
) -> dict[str, Form]:
    """Planned ensembles a new step of which is deferred: each stays as it is while all that it runs stays."""
    deferred = migration.deferred.get(server.name, set())
    planned = state.bindings.names.get(server.name, frozenset()) - forms.keys() - deferred
    held = state.observed.held(server.name)
    left = [held[each] for each in sorted(planned) if each in held and held[each].steps]
    found: dict[str, Form] = {}
    there = dict(forms)
    while whole := [form for form in left if all(_has(there, step, at) for step, at in form.steps.items())]:
        found |= {form.name: form for form in whole}
        there |= found
        left = [form for form in left if form.name not in found]
    return found


def _has(forms: Mapping[str, Form], name: str, version: int) -> bool:
    return name in forms and version in forms[name].versions


def _runs(ensemble: Form, ensembles: Mapping[str, Form]) -> set[str]:
    """What an ensemble runs, and what those of `ensembles` run that it runs."""
    found = set(ensemble.steps)
    while more := {step for each in found & ensembles.keys() for step in ensembles[each].steps} - found:
        found |= more
    return found


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

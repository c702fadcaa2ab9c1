"""Draining: something that is loaded and not planned is unloaded once it is available where it should be.

A model that moves stays routed where it was until it is reachable on each new server, and for as long as endpoints take
to follow. Then it is no longer routed to, and after the drain it is unloaded. The same holds for one that moves to
another pool, and, with its former steps, for one that is declared with others. What is no longer declared is drained at
once. What is declared and fits nowhere, or has no valid spec, stays: what serves goes on serving.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum

from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.state import Migration, PoolState


class Drain(Enum):
    """When something that the plan does not have where it is drains."""

    NOT_YET = "not until its new places are reachable, or as long as it has none"
    AFTER_HANDOVER = "its new places are reachable: once endpoints have followed"
    AT_ONCE = "it is not needed here"


def drain_of(state: PoolState, binding: Binding) -> Drain:
    """Return when a surplus model or ensemble of a server drains."""
    server, name = binding
    members, bindings = state.members, state.bindings
    steps = state.observed.loaded_on(server)[name].step_names
    # What is declared with other steps, or with none, is handed over to them; the former ones stay until then.
    is_valid = name in members.models or name in members.ensembles
    if not members.knows(name) or not (is_valid or all(map(members.knows, steps))):
        return Drain.AT_ONCE
    if not members.declares(name):
        return Drain.AFTER_HANDOVER if members.moved[name] else Drain.NOT_YET
    if name in members.broken:
        return Drain.NOT_YET
    new = bindings.servers.get(name, ())
    if not new:
        return Drain.NOT_YET if name in bindings.unschedulable else Drain.AT_ONCE
    return Drain.AFTER_HANDOVER if all(_available(state, server, name) for server in new) else Drain.NOT_YET


def schedule(
    state: PoolState,
    drains: Mapping[Binding, Drain],
    before: Mapping[Binding, datetime],
    now: datetime,
    period: timedelta,
    migration: Migration,
) -> None:
    """Put all that is surplus where it stands in time: routed, draining or gone. `before` is the last `drain_since`.

    `period` is from when something is no longer routed to, until it is unloaded.
    """
    for binding, drain in sorted(drains.items(), key=lambda item: item[0]):
        if drain is Drain.NOT_YET:
            migration.retained.setdefault(binding[0], set()).add(binding[1])
        else:
            since = _since(state, binding, drain, before.get(binding), now, period)
            _schedule(binding, since, now, period, migration)
    _keep_steps(state, migration)


def _since(
    state: PoolState, binding: Binding, drain: Drain, before: datetime | None, now: datetime, period: timedelta
) -> datetime:
    """Return since when a binding is not routed to; endpoints have half a period to follow."""
    handover = drain is Drain.AFTER_HANDOVER
    since = before if before is not None else now + (period / 2 if handover else timedelta())
    if state.observed.routed(*binding):
        since = max(since, now)  # what should have taken it from the routes failed: the drain begins only then
    if handover:
        return since
    since = min(since, now)
    return since if state.observed.serves(*binding) else min(since, now - period)  # nothing to drain


def _schedule(binding: Binding, since: datetime, now: datetime, period: timedelta, migration: Migration) -> None:
    server, name = binding
    migration.drain_since[binding] = since
    if now >= since:
        migration.unrouted.setdefault(server, set()).add(name)
    if now < since + period:
        migration.retained.setdefault(server, set()).add(name)
        due = since if now < since else since + period
        migration.wake = min(due, migration.wake or due)


def _available(state: PoolState, server: str, name: str) -> bool:
    version = state.members.version(name)
    ready = version is not None and state.observed.is_ready(server, name, version)
    return ready and state.observed.reachable(server, name) and not state.restarts(server)


def _keep_steps(state: PoolState, migration: Migration) -> None:
    """Retain the models that a retained ensemble runs."""
    for server, names in migration.retained.items():
        loaded = state.observed.loaded_on(server)
        while steps := {step for name in names for step in loaded[name].step_names if step in loaded} - names:
            names |= steps

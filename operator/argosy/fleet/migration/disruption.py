"""How much of a pool one round may take down. What would go beyond that stays as it is until more is allowed, or until
what the round was decided from has changed: a fault of what is known must not end a fleet that serves.

Not counted are what nobody declares any more, what is at zero, and what is reached on a server that stays.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from argosy.fleet.facts import CurrentServer
from argosy.fleet.migration.state import Migration, PoolState
from argosy.fleet.nodes.reservations import devices
from argosy.fleet.plan import Placement, ServerPlan

_FULL = 1000


@dataclass(frozen=True, slots=True)
class Disruption:
    """The servers that a round would have stopped though they serve, and how many it may stop of how many."""

    servers: tuple[str, ...]
    allowed: int
    of: int


def limited(state: PoolState, migration: Migration, share: int) -> tuple[PoolState, Disruption | None]:
    """The state where no more than `share` thousandths of the pool's servers, and one at least, go down; else without
    what was to become of them, and `migration` leaves them as they are.
    """
    answering = [each for each in state.current.values() if _answers(state, each)]
    allowed = max(1, len(answering) * share // _FULL)
    ending = [each for each in answering if _ends(state, migration, each)]
    stopped = [each for each in ending if _is_missed(state, each, answering, ending)]
    if len(stopped) <= allowed:
        return state, None
    kept = _with_whoever_needs_their_gpus(state, migration, stopped)
    for each in kept:
        _leave(state, migration, each)
    names = {each.name for each in kept}
    targets = {name: forms for name, forms in state.targets.items() if name not in names}
    found = Disruption(tuple(each.name for each in stopped), allowed, len(answering))
    return replace(state, targets=targets), found


def _answers(state: PoolState, server: CurrentServer) -> bool:
    report = state.observed.reports.get(server.name)
    return report is not None and report.ready


def _ends(state: PoolState, migration: Migration, server: CurrentServer) -> bool:
    """Whether a server would be stopped, or started anew in another place."""
    if any(each.name == server.name for each in state.plan.servers):
        return state.starts_anew(server.name)
    return all(each.name != server.name for each in migration.draining)


def _is_missed(
    state: PoolState, server: CurrentServer, answering: Iterable[CurrentServer], ending: Iterable[CurrentServer]
) -> bool:
    """Whether something that is to be served is reached there, and on no server that stays."""
    observed, places, leaving = state.observed, state.places, {each.name for each in ending}
    staying = [each.name for each in answering if each.name not in leaving]
    return any(
        observed.reachable(server.name, name) and not any(observed.reachable(other, name) for other in staying)
        for name in observed.held(server.name)
        if places.servers.get(name) or name in places.unschedulable
    )


def _with_whoever_needs_their_gpus(
    state: PoolState, migration: Migration, stopped: Iterable[CurrentServer]
) -> list[CurrentServer]:
    """What stays as it is: also servers that would be started anew on GPUs of what stays. New ones wait for them."""
    kept = {each.name: each for each in stopped}
    anew = [each for each in state.plan.servers if not state.keeps_its_gpus(each)]
    while more := [
        each for each in anew if each.name not in kept.keys() | migration.waiting and not _apart(each, kept.values())
    ]:
        kept.update({each.name: state.current[each.name] for each in more if each.name in state.current})
        migration.waiting |= {each.name for each in more if each.name not in state.current}
    return list(kept.values())


def _apart(server: ServerPlan, others: Iterable[CurrentServer]) -> bool:
    return devices([server]).isdisjoint(devices(others))


def _leave(state: PoolState, migration: Migration, server: CurrentServer) -> None:
    name = server.name
    migration.waiting |= {name}
    migration.kept[name] = set(state.observed.held(name))
    for decided in (migration.unrouted, migration.deferred, migration.former, migration.declared_only):
        decided.pop(name, None)
    for binding in [each for each in migration.drain_since if each[0] == name]:
        del migration.drain_since[binding]
    migration.draining = (*(each for each in migration.draining if each.name != name), _as_it_is(server))


def _as_it_is(server: CurrentServer) -> ServerPlan:
    """The server with its place, and those of its models."""
    placed = (Placement(model, 0, model, gpus, 1, 0, 0) for model, gpus in server.placed.items())
    return ServerPlan(server.name, server.node, server.gpus, tuple(placed))

"""How many servers a round may give up because their Nodes are gone.

Whoever deletes a Node ends its Pods. Where many still answer, it is rather the list of Nodes that is wrong, and a fault
of what is known must not end a fleet that serves.
Everything else that a round stops is moved first (`drain.py`), gives way to what waits in a circle, or is asked for.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from argosy.planning.facts import CurrentServer
from argosy.planning.migration.state import Migration, PoolState
from argosy.planning.plan import Placement, ServerPlan

_FULL = 1000


@dataclass(frozen=True, slots=True)
class Disruption:
    """The servers that a round would have stopped though they serve, and how many it may stop of how many."""

    servers: tuple[str, ...]
    allowed: int
    of: int


def limited(state: PoolState, migration: Migration, share: int) -> Disruption | None:
    """None where no more than `share` thousandths of the pool's servers, and one at least, would go down; else what
    would, and `migration` leaves it as it is.
    """
    answering = [each for each in state.current.values() if _answers(state, each)]
    gone = [each for each in answering if each.node not in state.nodes]
    staying = {each.name for each in answering if each.node in state.nodes}
    stopped = [each for each in gone if _is_missed(state, each, staying)]
    allowed = max(1, len(answering) * share // _FULL)
    if len(stopped) <= allowed:
        return None
    _leave(state, migration, stopped)
    return Disruption(tuple(each.name for each in stopped), allowed, len(answering))


def _answers(state: PoolState, server: CurrentServer) -> bool:
    report = state.observed.reports.get(server.name)
    return report is not None and report.ready


def _is_missed(state: PoolState, server: CurrentServer, staying: Collection[str]) -> bool:
    """Whether something that is to be served is reached there, and on no server that stays."""
    observed, bindings = state.observed, state.bindings
    return any(
        observed.reachable(server.name, name) and not any(observed.reachable(other, name) for other in staying)
        for name in observed.held(server.name)
        if bindings.servers.get(name) or name in bindings.unschedulable
    )


def _leave(state: PoolState, migration: Migration, servers: Iterable[CurrentServer]) -> None:
    for server in servers:
        migration.kept[server.name] = set(state.observed.held(server.name))
        migration.draining = (*migration.draining, _as_it_is(server))


def _as_it_is(server: CurrentServer) -> ServerPlan:
    """The server with its place, and those of its models."""
    placed = (Placement(model, 0, model, gpus, 1, 0, 0) for model, gpus in server.placed.items())
    return ServerPlan(server.name, server.node, server.gpus, tuple(placed))

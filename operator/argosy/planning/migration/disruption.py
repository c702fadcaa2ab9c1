"""Disruption of a pool's servers: how many a round may stop because their Nodes are gone, and which may restart now.

Deleting a Node ends its Pods. If many of these still answer, the list of Nodes is probably wrong, and a wrong
observation must not stop a serving fleet. Other servers stop only after their models moved (`drain.py`), to break a
deadlock, or on request. A changed Pod template is rolled out to one server of a pool at a time.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from argosy.planning.facts import CurrentServer, Need
from argosy.planning.migration.state import Migration, PoolState
from argosy.planning.plan import Placement, ServerPlan
from argosy.planning.server_names import natural

_FULL = 1000


@dataclass(frozen=True, slots=True)
class Disruption:
    """The servers that a round would have stopped though they serve, and how many it may stop of how many."""

    servers: tuple[str, ...]
    allowed: int
    of: int


def limited(state: PoolState, migration: Migration, share: int) -> Disruption | None:
    """Return the disruption that is not allowed, or None; `migration` then leaves its servers as they are.

    No more than `share` thousandths of the pool's servers, and one at least, may go down.
    """
    answering = [server for server in state.current.values() if _answers(state, server)]
    gone = [server for server in answering if server.node not in state.nodes]
    staying = {server.name for server in answering if server.node in state.nodes}
    stopped = [server for server in gone if _is_missed(state, server, staying)]
    allowed = max(1, len(answering) * share // _FULL)
    if len(stopped) <= allowed:
        return None
    _leave(state, migration, stopped)
    return Disruption(tuple(server.name for server in stopped), allowed, len(answering))


def _answers(state: PoolState, server: CurrentServer) -> bool:
    report = state.observed.reports.get(server.name)
    return report is not None and report.ready


def _is_missed(state: PoolState, server: CurrentServer, staying: Collection[str]) -> bool:
    """Return whether the server is the last reachable one of a desired model or ensemble."""
    observed, bindings = state.observed, state.bindings
    return any(
        observed.reachable(server.name, name) and not any(observed.reachable(other, name) for other in staying)
        for name in observed.loaded_on(server.name)
        if bindings.servers.get(name) or name in bindings.unschedulable
    )


def _leave(state: PoolState, migration: Migration, servers: Iterable[CurrentServer]) -> None:
    for server in servers:
        migration.retained[server.name] = set(state.observed.loaded_on(server.name))
        migration.draining = (*migration.draining, as_it_is(server))


def as_it_is(server: CurrentServer) -> ServerPlan:
    """Return the server as it is, with its models."""
    return ServerPlan(server.name, server.node, server.gpus, tuple(_placements(server)))


def _placements(server: CurrentServer) -> Iterator[Placement]:
    for model, gpus in server.placed.items():
        need = server.needs.get(model, Need())
        yield Placement(model, 0, model, gpus, 1, need.memory, need.compute)


@dataclass(frozen=True, slots=True)
class ServerUpgrade:
    """One server: whether its Pod template is outdated, whether it answers, and whether it has loaded its models.

    `settled`: every model was ready or failed once since its Pod began. `relied_on`: it serves something that drains on
    a server with the newest template, so that no other server may.
    """

    name: str
    outdated: bool
    ready: bool
    settled: bool
    relied_on: bool = False


def may_upgrade(servers: Sequence[ServerUpgrade]) -> frozenset[str]:
    """Return the server that may get the newest template now; empty while one that has it is not ready or still loads.

    Of several, one that serves nothing goes first: a template that mends it takes nothing away.
    """
    if any(not server.outdated and not (server.ready and server.settled) for server in servers):
        return frozenset()
    outdated = [server for server in servers if server.outdated and not server.relied_on]
    chosen = min(outdated, key=lambda server: (server.ready, server.settled, natural(server.name)), default=None)
    return frozenset({chosen.name} if chosen else ())

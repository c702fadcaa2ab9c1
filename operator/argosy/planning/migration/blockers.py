"""Blockers: a model waits for the memory, or a server for the GPUs, of what has not left yet."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from argosy.planning.facts import CurrentServer
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.memory.budget import MemoryBudget
from argosy.planning.migration.memory.occupancy import Occupant
from argosy.planning.migration.state import PoolState
from argosy.planning.plan import ServerPlan

Blockers = dict[Binding, frozenset[Binding]]
"""What waits, and for what to leave."""


def blockers_of(
    state: PoolState, surplus: Mapping[str, Sequence[Occupant]], budgets: Mapping[str, MemoryBudget]
) -> Blockers:
    """Return what of the planned servers is not there yet and waits, and for what.

    `surplus` is what is loaded and not planned, by server. A server that runs does not wait for GPUs.
    """
    blockers: Blockers = {}
    draining = state.draining_servers()
    for server in state.plan.servers:
        holders = frozenset(_holders(server, draining, surplus) if server.name not in state.current else ())
        if holders:
            blockers.update({(server.name, placement.model): holders for placement in server.placements})
        elif server.name in budgets:
            blockers.update(_for_memory(budgets[server.name]))
    return blockers


def _holders(
    server: ServerPlan, draining: Iterable[CurrentServer], surplus: Mapping[str, Sequence[Occupant]]
) -> Iterator[Binding]:
    """Yield the bindings that are still loaded on servers whose GPUs this one will get."""
    for other in draining:
        if other.node == server.node and set(other.gpus) & set(server.gpus):
            yield from ((other.name, occupant.name) for occupant in surplus.get(other.name, ()))


def _for_memory(budget: MemoryBudget) -> Iterator[tuple[Binding, frozenset[Binding]]]:
    server = budget.server.name
    for name, blocked in budget.blocked.items():
        if blocked.change.before is None:
            yield (server, name), frozenset((server, blocker) for blocker in blocked.blockers)

"""Models that lost their places to a higher priority: they leave, though they have no other place."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.blockers import Blockers
from argosy.planning.migration.drain import Drain
from argosy.planning.migration.memory.occupancy import Occupant
from argosy.planning.migration.state import PoolState


def outranked(
    state: PoolState, drains: Mapping[Binding, Drain], blockers: Blockers, before: Mapping[Binding, datetime]
) -> set[Binding]:
    """Return what serves without a place in the plan, and is in the way of a model of a higher priority that has one.

    What loaded ensembles run leaves with them. A drain that has begun goes on when the pool no longer preempts.
    """
    leaving: set[Binding] = set()
    for (_, waiting), awaited in blockers.items():
        for binding in awaited:
            lower = state.priorities.get(binding[1], 0) < state.priorities.get(waiting, 0)
            if lower and drains.get(binding) is Drain.NOT_YET and _is_lost(state, binding, before):
                server, name = binding
                leaving |= {(server, user) for user in state.observed.with_users(name, server)} & drains.keys()
    return leaving


def _is_lost(state: PoolState, binding: Binding, before: Mapping[Binding, datetime]) -> bool:
    return binding[1] in state.bindings.unschedulable and (state.preempts or binding in before)


def preempted(
    state: PoolState, surplus: Mapping[str, Sequence[Occupant]], drains: Mapping[Binding, Drain]
) -> set[Binding]:
    """Return what serves without a place in the plan, on GPUs that the pool leaves to what comes first in another one.

    What loaded ensembles run leaves with them.
    """
    leaving: set[Binding] = set()
    for server, occupants in surplus.items() if state.plan.preempted else ():
        node = state.current[server].node
        for occupant in occupants:
            is_lost = occupant.name in state.bindings.unschedulable and drains[server, occupant.name] is Drain.NOT_YET
            if is_lost and any((node, gpu) in state.plan.preempted for gpu in occupant.gpus):
                users = state.observed.with_users(occupant.name, server)
                leaving |= {(server, user) for user in users} & drains.keys()
    return leaving

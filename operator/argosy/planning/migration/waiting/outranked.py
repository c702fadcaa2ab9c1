"""Models that lost their places to a higher priority: they leave, though they have no other place."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from argosy.planning.demand.footprint import footprint_of
from argosy.planning.facts import Gpu
from argosy.planning.migration.bindings import Binding
from argosy.planning.migration.blockers import Blockers
from argosy.planning.migration.drain import Drain
from argosy.planning.migration.memory.occupancy import Occupant, loaded_bytes
from argosy.planning.migration.state import PoolState
from argosy.planning.packing.capacity import cpu_memory_of
from argosy.planning.plan import Placement


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
                leaving |= state.observed.bindings_with_users(binding) & drains.keys()
    return leaving


def crowded_out(
    state: PoolState,
    surplus: Mapping[str, Sequence[Occupant]],
    drains: Mapping[Binding, Drain],
    before: Mapping[Binding, datetime],
) -> Blockers:
    """Return what serves without a place in the plan where that leaves no room for it next to what comes first, which
    is named for each. For want of compute, of memory beyond the headroom, or of memory on a CPU no load waits: without
    this both would serve from there on.

    What loaded ensembles run leaves with them.
    """
    leaving: Blockers = {}
    for server, occupants in surplus.items():
        for occupant in occupants:
            binding = server, occupant.name
            if drains[binding] is Drain.NOT_YET and _is_lost(state, binding, before):
                winners = frozenset(_winners(state, server, occupant))
                users = state.observed.bindings_with_users(binding) if winners else set[Binding]()
                for user in users & drains.keys():
                    leaving[user] = leaving.get(user, frozenset()) | winners
    return leaving


def awaited_on_cpus(state: PoolState, leaving: Blockers) -> Blockers:
    """Return what is not loaded yet on a server without GPUs, and waits until what it crowds out has left."""
    awaited: Blockers = {}
    for binding, winners in leaving.items():
        for server, name in winners if not state.current[binding[0]].gpus else ():
            if name not in state.observed.loaded_on(server):
                awaited[server, name] = awaited.get((server, name), frozenset()) | {binding}
    return awaited


def _winners(state: PoolState, server: str, occupant: Occupant) -> Iterator[Binding]:
    """Yield what comes first on each device on which the plan leaves no room for a loaded model."""
    node, model = state.nodes.get(state.current[server].node), state.members.models.get(occupant.name)
    if node is None or model is None:
        return
    loaded = state.observed.loaded_on(server)[occupant.name]
    memory = loaded_bytes(loaded.versions.values(), occupant.name, state.members)
    devices: list[Gpu | None] = [gpu for gpu in node.gpus if gpu.index in occupant.gpus and not gpu.is_cpu]
    compute = footprint_of(model).compute // max(1, len(devices))
    for gpu in devices or [None]:
        there = [*_planned_on(state, node.name, gpu)]
        left = cpu_memory_of(node, state.headroom) if gpu is None else gpu.usable(state.headroom)
        left -= sum(placement.memory for _, placement in there)
        busy = 0 if gpu is None else sum(placement.compute for _, placement in there) + compute - gpu.compute
        if memory > left or busy > 0:
            priority = state.priorities.get(occupant.name, 0)
            yield from ((at, one.model) for at, one in there if state.priorities.get(one.model, 0) > priority)


def _planned_on(state: PoolState, node: str, gpu: Gpu | None) -> Iterator[tuple[str, Placement]]:
    """Yield what is planned on a GPU of a node, or on its CPU, each with its server."""
    for server in state.plan.servers:
        for placement in server.placements if server.node == node else ():
            if gpu.index in placement.gpus if gpu is not None else not placement.gpus:
                yield server.name, placement


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
                leaving |= state.observed.bindings_with_users((server, occupant.name)) & drains.keys()
    return leaving

"""What others have of the capacity that a replica lacks: the nearest miss, with the numbers."""

from collections.abc import Iterable

from argosy.api import Reason
from argosy.planning.amounts import gib, listed, percent, quantity
from argosy.planning.facts import Demand
from argosy.planning.nodes.device_names import device_of
from argosy.planning.nodes.slices import is_slice
from argosy.planning.packing.capacity import FreeCapacity, roomiest
from argosy.planning.packing.fit.fit_limits import Diagnosis, hardest, need_text
from argosy.planning.packing.fit.servers import all_have_one
from argosy.planning.packing.fit.view import FitView
from argosy.planning.packing.layout import Layout, Replica

_NAMED = 3
"""Rollouts that a message names."""


def occupied(view: FitView, replica: Replica) -> Diagnosis:
    """Diagnose a replica that would fit an empty pool, where others are in its way."""
    demand = hardest(list(replica.group.demands))
    if view.layout.topology.cpu_only:
        return _no_cpu_memory(view.layout, replica)
    if demand.footprint.exclusive:
        return _no_free_gpus(view, demand)
    if demand.footprint.shares > 1:
        return _too_few_for_parts(view, replica, demand)
    return _no_free_memory(view, replica, demand)


def _no_free_gpus(view: FitView, demand: Demand) -> Diagnosis:
    free = {node: len(gpus) for node, gpus in view.layout.unallocated.items()}
    node = max(free, key=lambda name: free[name])
    need = need_text(demand) + (" with NVLink" if demand.footprint.gpus > 1 else "")
    return Diagnosis(
        Reason.NO_FREE_GPUS,
        f"{demand.model} needs {need} on one node; the largest free is {free[node]} on node {node}, of "
        f"{sum(map(len, view.full.topology.usable.values()))} in the pool{_with_rest(view)}. Remove or shrink a "
        f"model, or add {quantity(demand.footprint.gpus, 'GPU')}.",
    )


def _too_few_for_parts(view: FitView, replica: Replica, demand: Demand) -> Diagnosis:
    """Diagnose a model that is divided among GPUs, of which no node has enough with so much left."""
    layout, need = view.layout, demand.footprint
    able = {
        node: sum(layout.topology.empty_gpu(node, gpu).takes(need) for gpu in gpus if not is_slice(gpu))
        for node, gpus in layout.unallocated.items()
    }
    hosts = {server.name for server in layout.hosts(replica.group.name)}
    for server in (server for name, server in layout.servers.items() if name not in hosts):
        able[server.node] = max(able.get(server.node, 0), sum(left.takes(need) for left in server.free.values()))
    node = max(sorted(able), key=lambda name: able[name])
    return Diagnosis(
        Reason.NO_FREE_MEMORY,
        f"{demand.model} needs {need_text(demand)} for one server; node {node} has the most with that much free, "
        f"{able[node]}{_with_rest(view)}. Lower instances, remove or shrink a model, or add a GPU.",
    )


def _no_free_memory(view: FitView, replica: Replica, demand: Demand) -> Diagnosis:
    """Diagnose a replica for which no GPU has enough left. The nearest miss is named, where no other replica is."""
    layout = view.layout
    able = _roomiest_without(layout, replica.group.name)
    if not able:
        return all_have_one(replica)
    node, gpu, left = min(able, key=lambda entry: (max(_shortage(demand, entry[2])), entry[:2]))
    reserved = _reserved(demand for server in layout.servers.values() for demand in server.demands_on(node, gpu))
    others = ", together with what shares its server" if len(replica.group.demands) > 1 else ""
    return Diagnosis(
        Reason.NO_FREE_MEMORY,
        f"{demand.model} needs {need_text(demand)}{others}; the nearest miss is "
        f"{device_of(layout.topology.nodes[node], gpu)} of node {node} with {gib(left.memory)} and "
        f"{percent(left.compute)} free{reserved}{_with_rest(view)}. Remove or shrink a model, or add a GPU.",
    )


def _reserved(demands: Iterable[Demand]) -> str:
    """Return what candidates of rollouts have of a device for a while, as a further clause; empty if nothing."""
    surging = {demand.model: demand.footprint.surge for demand in demands if demand.footprint.surge}
    if not surging:
        return ""
    rollouts = (
        f"the rollout of {listed(sorted(surging))} ends"
        if len(surging) == 1
        else (f"the rollouts of {listed(sorted(surging), _NAMED)} end")
    )
    return f", where {gib(sum(surging.values()))} are reserved until {rollouts}"


def _with_rest(view: FitView) -> str:
    """Return the GPUs of the pool that are out of reach, as a further clause; empty if there are none."""
    return f"; of the pool's GPUs {view.out_of_reach}" if view.holders else ""


def _roomiest_without(layout: Layout, group: str) -> list[tuple[str, int, FreeCapacity]]:
    """Return the roomiest GPUs but for those of servers that have a replica of a group."""
    theirs = {(server.node, gpu) for server in layout.hosts(group) for gpu in server.free}
    if theirs.isdisjoint((node, gpu) for node, gpu, _ in layout.roomiest):
        return layout.roomiest
    return roomiest(entry for entry in layout.left() if entry[:2] not in theirs)


def _shortage(demand: Demand, left: FreeCapacity) -> tuple[float, float]:
    """Return the missing parts of memory and compute, each as a fraction of the need."""
    need = demand.footprint
    memory = max(0, need.memory - left.memory) / max(1, need.memory)
    return memory, max(0, need.compute - left.compute) / max(1, need.compute)


def _no_cpu_memory(layout: Layout, replica: Replica) -> Diagnosis:
    need = sum(demand.footprint.memory for demand in replica.group.demands)
    node, free = max(((node, layout.cpu_free(node).memory) for node in layout.topology.nodes), key=lambda item: item[1])
    reserved = _reserved(demand for server in layout.servers.values() for demand in server.demands_on(node))
    return Diagnosis(
        Reason.NO_FREE_MEMORY,
        f"{replica.group.name} needs {gib(need)} of memory; the most that is free is {gib(free)} on {node}{reserved}. "
        "Remove or shrink a model, or lower memoryHeadroom.",
    )

"""Why a replica fits nowhere: the first rule that stops it, the numbers, the nearest miss and the way out."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from argosy.api import Reason
from argosy.fleet.amounts import counted, gib, percent
from argosy.fleet.facts import Demand
from argosy.fleet.packing.capacity import FULL_COMPUTE, Room, gpus_of
from argosy.fleet.packing.gpu_assignment import hardness
from argosy.fleet.packing.layout import Layout, Replica, Terrain
from argosy.fleet.packing.scoring import best


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The reason, and a sentence with the numbers and what to do."""

    reason: Reason
    message: str


_Rule = Callable[[Layout, Replica], Diagnosis | None]


def explain(layout: Layout, replica: Replica) -> Diagnosis:
    """Why `replica` has no place in `layout`, which it does not fit. The first rule that applies answers."""
    rules: tuple[_Rule, ...] = (
        _no_nodes,
        _no_gpus,
        _model_too_large,
        _group_too_large,
        _server_limit,
        _apart,
    )
    found = (rule(layout, replica) for rule in rules)
    return next((diagnosis for diagnosis in found if diagnosis), None) or _occupied(layout, replica)


def _no_nodes(layout: Layout, replica: Replica) -> Diagnosis | None:
    if layout.terrain.nodes:
        return None
    return Diagnosis(
        Reason.NO_NODES,
        f"pool {layout.terrain.facts.pool} has no ready node: nodeSelector and tolerations match none. "
        "Change them, or add a node that they match.",
    )


def _no_gpus(layout: Layout, replica: Replica) -> Diagnosis | None:
    needs = [demand for demand in replica.group.demands if not demand.footprint.on_cpu]
    if any(gpus_of(node) for node in layout.terrain.nodes.values()) or not needs:
        return None
    if layout.terrain.stand_in and all(demand.footprint.gpus <= 1 for demand in needs):
        return None
    demand = _hardest(needs)
    return Diagnosis(
        Reason.NO_GPUS,
        f"{demand.model} needs {need_text(demand)}, and no ready node of pool {layout.terrain.facts.pool} "
        "has a GPU. Add a node with GPUs; if there is one, check that its driver and device plugin report "
        "nvidia.com/gpu.",
    )


def _model_too_large(layout: Layout, replica: Replica) -> Diagnosis | None:
    """A model that no empty node could take."""
    if layout.terrain.stand_in:
        return None
    for demand in sorted(replica.group.demands, key=lambda demand: (hardness(demand.footprint), demand.model)):
        for rule in (_compute, _memory, _count, _nvlink, _per_server):
            diagnosis = None if demand.footprint.on_cpu else rule(layout.terrain, demand)
            if diagnosis:
                return diagnosis
    return None


def _compute(terrain: Terrain, demand: Demand) -> Diagnosis | None:
    need = demand.footprint
    if need.whole or need.compute <= FULL_COMPUTE:
        return None
    fitting = demand.instances * FULL_COMPUTE // need.compute
    return Diagnosis(
        Reason.COMPUTE_TOO_LARGE,
        f"{demand.model} needs {percent(need.compute)} of a GPU's compute with "
        f"{counted(demand.instances, 'instance')}; one GPU gives 100 %. Lower instances to "
        f"{max(1, fitting)}, or raise minReplicas instead, or give it whole GPUs with footprint.gpus.",
    )


def _memory(terrain: Terrain, demand: Demand) -> Diagnosis | None:
    need = demand.footprint
    largest = max((usable, node) for node, gpus in terrain.usable.items() for usable in [max(gpus.values(), default=0)])
    if need.memory <= largest[0]:
        return None
    headroom = terrain.facts.headroom
    versions = ", the versions that versionPolicy keeps" if demand.versions > 1 else ""
    return Diagnosis(
        Reason.GPU_TOO_SMALL,
        f"{demand.model} needs {memory_text(demand)} on one GPU; the largest usable is {gib(largest[0])} on "
        f"node {largest[1]} (memoryHeadroom keeps {percent(headroom)} free), {gib(need.memory - largest[0])} "
        f"short. Lower memoryHeadroom, instances{versions} or the model's memory, spread it with parallelism.tensor, "
        "or add larger GPUs.",
    )


def _count(terrain: Terrain, demand: Demand) -> Diagnosis | None:
    able = {
        node: sum(1 for usable in gpus.values() if usable >= demand.footprint.memory)
        for node, gpus in terrain.usable.items()
    }
    node = max(able, key=lambda name: able[name])
    if demand.footprint.gpus <= able[node]:
        return None
    return Diagnosis(
        Reason.TOO_FEW_GPUS_ON_A_NODE,
        f"{demand.model} needs {need_text(demand)} on one node; node {node} has the most that large, "
        f"{able[node]}. Lower parallelism to {able[node]} GPUs or fewer, or add a node with "
        f"{demand.footprint.gpus}.",
    )


def _nvlink(terrain: Terrain, demand: Demand) -> Diagnosis | None:
    need = demand.footprint
    if need.gpus <= 1:
        return None
    best_node, most = "", 0
    for node in terrain.nodes.values():
        usable = terrain.usable[node.name]
        joined = max((sum(1 for g in group if usable.get(g, -1) >= need.memory) for group in node.nvlink), default=0)
        if not best_node or joined > most:
            best_node, most = node.name, joined
    if need.gpus <= most:
        return None
    return Diagnosis(
        Reason.NO_NVLINK,
        f"{demand.model} needs {need_text(demand)} joined by NVLink; the most that are joined is {most}, on "
        f"node {best_node}. Add a node with NVLink; if the node has it, name the joined GPUs in its "
        "annotation argosy.dev/nvlink "
        '(for example "0,1;2,3").',
    )


def _per_server(terrain: Terrain, demand: Demand) -> Diagnosis | None:
    limit = terrain.facts.max_gpus_per_server
    if limit is None or max(1, demand.footprint.gpus) <= limit:
        return None
    return Diagnosis(
        Reason.SERVER_TOO_SMALL,
        f"{demand.model} needs {need_text(demand)}; maxGpusPerServer lets a server have {limit}. "
        f"Raise maxGpusPerServer to {max(1, demand.footprint.gpus)}.",
    )


def _group_too_large(layout: Layout, replica: Replica) -> Diagnosis | None:
    """An ensemble whose models fit one by one, and not together on any empty server."""
    terrain = layout.terrain
    if _fits(Layout.empty(terrain), replica):
        return None
    models = ", ".join(f"{d.model} ({need_text(d)})" for d in replica.group.demands if not d.footprint.on_cpu)
    if terrain.stand_in:
        node, room = max(terrain.cpu_memory.items(), key=lambda item: item[1])
        limit = f"the most memory of one machine is {gib(room)}, on {node}"
    else:
        node, gpus = max(terrain.usable.items(), key=lambda item: len(item[1]))
        limit = f"node {node} has the most GPUs, {len(gpus)} with {gib(max(gpus.values(), default=0))} usable each"
        if terrain.facts.max_gpus_per_server is not None:
            limit += f", and maxGpusPerServer allows {terrain.facts.max_gpus_per_server}"
    return Diagnosis(
        Reason.GROUP_TOO_LARGE,
        f"these must share one server: {models}; {limit}. Shrink them, split the ensemble, raise "
        "maxGpusPerServer, or add a larger node.",
    )


def _server_limit(layout: Layout, replica: Replica) -> Diagnosis | None:
    limit = layout.terrain.facts.max_servers
    unlimited = replace(layout.terrain, facts=replace(layout.terrain.facts, max_servers=None))
    if limit is None or not _fits(replace(layout, terrain=unlimited), replica):
        return None
    return Diagnosis(
        Reason.SERVER_LIMIT,
        f"replica {replica.index + 1} of {replica.group.name} needs a server of its own, and maxServers is "
        f"{limit}. Raise maxServers, or lower minReplicas.",
    )


def _apart(layout: Layout, replica: Replica) -> Diagnosis | None:
    """It would fit, were there not another replica on that server."""
    stranger = Replica(replace(replica.group, name=f"{replica.group.name} "), replica.index)
    if not layout.nodes_with(replica.group.name) or not _fits(layout, stranger):
        return None
    return Diagnosis(
        Reason.REPLICAS_APART,
        f"replica {replica.index + 1} of {replica.group.name} fits only on a server that has one already, "
        "and replicas stay apart. Lower minReplicas, raise instances instead, or add a GPU.",
    )


def _occupied(layout: Layout, replica: Replica) -> Diagnosis:
    """It would fit an empty pool; others are where it would go."""
    demand = _hardest(list(replica.group.demands))
    if layout.terrain.stand_in:
        return _no_cpu_memory(layout, replica)
    if demand.footprint.whole:
        return _no_free_gpus(layout, demand)
    return _no_room(layout, demand, together=len(replica.group.demands) > 1)


def _no_free_gpus(layout: Layout, demand: Demand) -> Diagnosis:
    free = {node: len(gpus) for node, gpus in layout.free.items()}
    node = max(free, key=lambda name: free[name])
    need = need_text(demand) + (" with NVLink" if demand.footprint.gpus > 1 else "")
    return Diagnosis(
        Reason.NO_FREE_GPUS,
        f"{demand.model} needs {need} on one node; the largest free is {free[node]} on node {node}, of "
        f"{sum(map(len, layout.terrain.usable.values()))} in the pool. Remove or shrink a model, or add "
        f"{counted(demand.footprint.gpus, 'GPU')}.",
    )


def _no_room(layout: Layout, demand: Demand, together: bool) -> Diagnosis:
    """No GPU has enough left; the one that lacks least is named."""
    held = [(server.node, gpu, room) for server in layout.servers.values() for gpu, room in server.rooms.items()]
    free = [(node, gpu, layout.terrain.empty_room(node, gpu)) for node, gpus in layout.free.items() for gpu in gpus]
    node, gpu, room = min([*held, *free], key=lambda entry: (max(_shortage(demand, entry[2])), entry[:2]))
    beside = ", together with the rest of its ensemble on one server" if together else ""
    return Diagnosis(
        Reason.NO_ROOM,
        f"{demand.model} needs {need_text(demand)}{beside}; the nearest miss is GPU {gpu} of node {node} "
        f"with {gib(room.memory)} and {percent(room.compute)} free. Remove or shrink a model, or add a GPU.",
    )


def _shortage(demand: Demand, room: Room) -> tuple[float, float]:
    """The missing parts of memory and compute, each as a fraction of what is needed."""
    need = demand.footprint
    memory = max(0, need.memory - room.memory) / max(1, need.memory)
    return memory, max(0, need.compute - room.compute) / max(1, need.compute)


def _no_cpu_memory(layout: Layout, replica: Replica) -> Diagnosis:
    need = sum(demand.footprint.memory for demand in replica.group.demands)
    node, room = max(((node, layout.cpu_free(node)) for node in layout.terrain.nodes), key=lambda item: item[1])
    return Diagnosis(
        Reason.NO_ROOM,
        f"{replica.group.name} needs {gib(need)} of memory; the most that is free is {gib(room)} on {node}. "
        "Remove or shrink a model, or lower memoryHeadroom.",
    )


def need_text(demand: Demand) -> str:
    """What a model needs, in words: `2 GPUs of 60 GiB`, `8 GiB and 20 % of a GPU`."""
    need = demand.footprint
    if need.whole:
        size = f" of {memory_text(demand)}" if need.memory else ""
        return counted(need.gpus, "GPU") + size
    return f"{memory_text(demand)} and {percent(need.compute)} of a GPU"


def memory_text(demand: Demand) -> str:
    """`60 GiB`; of several versions, `60 GiB for 3 versions`."""
    of_several = f" for {counted(demand.versions, 'version')}" if demand.versions > 1 else ""
    return gib(demand.footprint.memory) + of_several


def _hardest(demands: list[Demand]) -> Demand:
    return min(demands, key=lambda demand: (hardness(demand.footprint), demand.model))


def _fits(layout: Layout, replica: Replica) -> bool:
    return best(layout, replica) is not None

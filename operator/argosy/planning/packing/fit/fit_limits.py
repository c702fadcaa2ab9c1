"""Limits that keep a model from every empty node of a pool: the first one, the numbers, the way out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from argosy.api import Reason
from argosy.planning.amounts import gib, percent, quantity
from argosy.planning.demand.divided import (
    able_gpus,
    divided,
    divisors,
    fewer_instances,
    in_parts,
    instances_of_all,
    with_instances,
)
from argosy.planning.facts import Demand, Node
from argosy.planning.nodes.device_names import device_of
from argosy.planning.nodes.slices import is_slice, kind_of
from argosy.planning.packing.capacity import FULL_COMPUTE
from argosy.planning.packing.gpu_assignment import hardness
from argosy.planning.packing.layout import Layout, Topology


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The reason, and a sentence with the numbers and what to do."""

    reason: Reason
    message: str


def limit_of(bare: Layout, demands: tuple[Demand, ...]) -> Diagnosis | None:
    """Return the limit that one of the models exceeds on every node, the hardest model first; None if none does.

    `bare` has nothing placed, and every GPU of the nodes, including withheld ones.
    """
    for demand in sorted(demands, key=lambda demand: (hardness(demand.footprint), demand.model)):
        rules = [_count, _nvlink, _per_server]
        if not any(gpu.takes(demand.footprint) for _, _, gpu in bare.roomiest):
            rules = [_divided, _compute, _memory, *rules]
        for rule in rules:
            diagnosis = None if demand.footprint.on_cpu else rule(bare.topology, demand)
            if diagnosis:
                return diagnosis
    return None


def need_text(demand: Demand) -> str:
    """Return what a model needs, in words: `2 GPUs of 60 GiB`, `8 GiB and 20 % of a GPU`, `8 GiB of a GPU`."""
    need = demand.footprint
    if need.exclusive:
        size = f" of {memory_text(demand)}" if need.memory else ""
        unsaid = " of its own (footprint.gpuMemory would tell how much of one it takes)" if need.assumed else ""
        return quantity(need.gpus, "GPU") + size + unsaid
    where = f"each of {quantity(need.shares, 'GPU')}" if need.shares > 1 else "a GPU"
    compute = f" and {percent(need.compute)}" if need.compute else ""
    return f"{memory_text(demand)}{compute} of {where}"


def memory_text(demand: Demand) -> str:
    """Return the memory as `60 GiB`; of several versions, as `60 GiB for 3 versions`."""
    of_several = f" for {quantity(demand.versions, 'version')}" if demand.versions > 1 else ""
    return gib(demand.footprint.memory) + of_several


def hardest(demands: list[Demand]) -> Demand:
    """Return the model that is hardest to place."""
    return min(demands, key=lambda demand: (hardness(demand.footprint), demand.model))


def _divided(topology: Topology, demand: Demand) -> Diagnosis | None:
    """Diagnose instances that neither one GPU holds nor, divided evenly, GPUs of one server."""
    if not demand.divisible:
        return None
    facts, nodes = topology.facts, list(topology.nodes.values())
    headroom, limit = facts.headroom, facts.max_gpus_per_server
    fewer = next(fewer_instances(demand, nodes, headroom, limit), None)
    if fewer is None:
        single = replace(with_instances(demand, 1), model=f"each instance of {demand.model}", divisible=False)
        return _compute(topology, single) or _memory(topology, single)
    unlimited = divided(demand, nodes, headroom, None)
    is_limited = unlimited.footprint.shares > 1
    part = unlimited if is_limited else _smallest_division(demand, nodes, headroom)
    return _too_few_for_parts(topology, demand, part, instances_of_all(fewer), is_limited=is_limited)


def _smallest_division(demand: Demand, nodes: Sequence[Node], headroom: int) -> Demand:
    """Return the demand divided among the fewest GPUs of which some node has one that is large enough."""
    every = (in_parts(demand, parts) for parts in divisors(demand.instances))
    able = (part for part in every if any(able_gpus(part.footprint, node, headroom) for node in nodes))
    return next(able, in_parts(demand, demand.instances))


def _too_few_for_parts(topology: Topology, demand: Demand, part: Demand, fewer: int, *, is_limited: bool) -> Diagnosis:
    facts, shares = topology.facts, part.footprint.shares
    needs = f"{demand.model} has {demand.instances} instances, which no GPU holds together. Divided evenly they need "
    if is_limited:
        return Diagnosis(
            Reason.SERVER_TOO_SMALL,
            f"{needs}{need_text(part)} on one server, and maxGpusPerServer lets it have {facts.max_gpus_per_server}. "
            f"Raise maxGpusPerServer to {shares}, or lower instances to {fewer} and raise minReplicas.",
        )
    able = {node.name: able_gpus(part.footprint, node, facts.headroom) for node in topology.nodes.values()}
    node = max(able, key=lambda name: able[name])
    return Diagnosis(
        Reason.TOO_FEW_GPUS_ON_A_NODE,
        f"{needs}{need_text(part)} on one node; node {node} has the most that large, {able[node]}. Lower instances to "
        f"{fewer} and raise minReplicas, or add a node with {shares}.",
    )


def _compute(topology: Topology, demand: Demand) -> Diagnosis | None:
    need = demand.footprint
    if need.exclusive:
        return None
    most, where = _most_compute(topology, need.memory)
    if need.compute <= most:
        return None
    fitting = demand.instances * most // need.compute
    gives = "one GPU gives 100 %" if most == FULL_COMPUTE else f"the most that one with its memory has is {where}"
    can_be_fewer = fitting and demand.instances > 1
    fewer = f"Lower instances to {fitting} and raise minReplicas" if can_be_fewer else "Lower footprint.compute"
    more = "give it whole GPUs with footprint.gpus" if most == FULL_COMPUTE else "add a larger slice, or a whole GPU"
    return Diagnosis(
        Reason.COMPUTE_TOO_LARGE,
        f"{demand.model} needs {percent(need.compute)} of a GPU's compute with "
        f"{quantity(demand.instances, 'instance')}; {gives}. {fewer}, or {more}.",
    )


def _most_compute(topology: Topology, memory: int) -> tuple[int, str]:
    """Return the most compute of a device with so much memory, and which one it is. Without one, that of a whole GPU:
    its memory is what is short.
    """
    able = [
        (
            topology.empty_gpu(node, gpu).compute,
            f"{percent(topology.empty_gpu(node, gpu).compute)}, of {_name(topology, node, gpu)}",
        )
        for node, gpus in topology.usable.items()
        for gpu in _firsts(gpus, memory)
    ]
    return max(able, default=(FULL_COMPUTE, ""))


def _name(topology: Topology, node: str, gpu: int) -> str:
    return f"{device_of(topology.nodes[node], gpu)} of node {node}"


def _firsts(gpus: Mapping[int, int], memory: int) -> list[int]:
    """Return the first device of each kind that has so much memory."""
    kinds: dict[int, int] = {}
    for gpu, usable in gpus.items():
        if usable >= memory:
            kinds.setdefault(kind_of(gpu), gpu)
    return list(kinds.values())


def _memory(topology: Topology, demand: Demand) -> Diagnosis | None:
    need = demand.footprint
    largest = max(
        (usable, node) for node, gpus in topology.usable.items() for usable in [max(gpus.values(), default=0)]
    )
    if need.memory <= largest[0]:
        return None
    headroom = topology.facts.headroom
    return Diagnosis(
        Reason.GPU_TOO_SMALL,
        f"{demand.model} needs {memory_text(demand)} on one GPU; the largest usable is {gib(largest[0])} on "
        f"node {largest[1]} (memoryHeadroom keeps {percent(headroom)} free), {gib(need.memory - largest[0])} "
        f"short. Lower {_to_lower(topology, demand)}, {_split(demand)}or add larger GPUs.",
    )


def _to_lower(topology: Topology, demand: Demand) -> str:
    """Return what a model would fit on one GPU with less of, or may with much less of."""
    every = (gpu for gpus in topology.empty.values() for gpu in gpus.values())
    without_headroom = max((gpu.memory + gpu.headroom for gpu in every), default=0)
    ways = (
        ("memoryHeadroom", demand.footprint.memory <= without_headroom),
        ("instances", demand.instances > 1),
        ("the versions that versionPolicy keeps", demand.versions > 1),
    )
    first = ", ".join(way for way, helps in ways if helps)
    return f"{first} or the model's memory" if first else "the model's memory"


def _split(demand: Demand) -> str:
    """Return how an instance takes more GPUs, with a comma; empty where its backend runs it on one."""
    if not demand.splittable:
        return ""
    return "raise parallelism.tensor, " if demand.footprint.gpus > 1 else "spread it with parallelism.tensor, "


def _count(topology: Topology, demand: Demand) -> Diagnosis | None:
    able = {
        node: sum(usable >= demand.footprint.memory and not is_slice(gpu) for gpu, usable in gpus.items())
        for node, gpus in topology.usable.items()
    }
    node = max(able, key=lambda name: able[name])
    if demand.footprint.gpus <= able[node]:
        return None
    if not able[node]:
        return _no_full_gpu(demand)
    return Diagnosis(
        Reason.TOO_FEW_GPUS_ON_A_NODE,
        f"{demand.model} needs {need_text(demand)} on one node; node {node} has the most that large, "
        f"{able[node]}. Lower parallelism to {able[node]} GPUs or fewer, or add a node with "
        f"{demand.footprint.gpus}.",
    )


def _no_full_gpu(demand: Demand) -> Diagnosis:
    full = quantity(demand.footprint.gpus, "whole GPU")
    out = "Declare footprint.gpuMemory, so that a slice may have it, or add" if demand.footprint.assumed else "Add"
    return Diagnosis(
        Reason.TOO_FEW_GPUS_ON_A_NODE,
        f"{demand.model} needs {need_text(demand)}, and of that size the pool has slices of GPUs alone. {out} a node "
        f"with {full}.",
    )


def _nvlink(topology: Topology, demand: Demand) -> Diagnosis | None:
    need = demand.footprint
    if need.gpus <= 1:
        return None
    best_node, most = "", 0
    for node in topology.nodes.values():
        usable = topology.usable[node.name]
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


def _per_server(topology: Topology, demand: Demand) -> Diagnosis | None:
    limit = topology.facts.max_gpus_per_server
    if limit is None or max(1, demand.footprint.gpus) <= limit:
        return None
    return Diagnosis(
        Reason.SERVER_TOO_SMALL,
        f"{demand.model} needs {need_text(demand)}; maxGpusPerServer lets a server have {limit}. "
        f"Raise maxGpusPerServer to {max(1, demand.footprint.gpus)}.",
    )

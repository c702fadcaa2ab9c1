"""Rules on what there is at all: a ready node, a GPU, an engine for one of them."""

from collections.abc import Iterable

from argosy.api import Reason
from argosy.planning.amounts import listed
from argosy.planning.facts import Group, Node
from argosy.planning.packing.capacity import gpus_of
from argosy.planning.packing.fit.fit_limits import Diagnosis, hardest, need_text
from argosy.planning.packing.fit.view import FitView
from argosy.planning.packing.layout import Replica

_NAMED = 3
"""Nodes that a message names."""


def no_nodes(view: FitView, _: Replica) -> Diagnosis | None:
    """Diagnose a pool without nodes."""
    topology = view.layout.topology
    if topology.nodes:
        return None
    facts = topology.facts
    if facts.left_out:
        message = f"no node of pool {facts.pool} takes new models: {listed(facts.left_out, _NAMED)}. Make one of them"
        return Diagnosis(Reason.NO_NODES, f"{message} usable, or add a node.")
    return Diagnosis(
        Reason.NO_NODES,
        f"pool {facts.pool} has no ready node that its nodeSelector and tolerations match. Add a node that they match, "
        "or change them.",
    )


def no_gpus(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a pool without GPUs, or with none but those that MIG divides into slices which cannot be used."""
    topology = view.layout.topology
    needs = [demand for demand in replica.group.demands if not demand.footprint.on_cpu]
    gpus = [gpu for node in topology.nodes.values() for gpu in gpus_of(node)]
    if any(gpu.memory for gpu in gpus) or not needs:
        return None
    demand = hardest(needs)
    if gpus:
        return Diagnosis(
            Reason.NO_FREE_GPUS,
            f"{demand.model} needs {need_text(demand)}, and of what the pool's nodes offer "
            f"{view.out_of_reach}. Divide these GPUs into slices of a supported profile that have their labels, or add "
            "a node with GPUs.",
        )
    if topology.cpu_only and all(demand.footprint.gpus <= 1 for demand in needs):
        return None
    return Diagnosis(
        Reason.NO_GPUS,
        f"{demand.model} needs {need_text(demand)}, and no ready node of pool {topology.facts.pool} "
        "has a GPU. Add a node with GPUs; if there is one, check that its driver and device plugin report "
        "nvidia.com/gpu.",
    )


def engines(group: Group) -> str:
    """Return what a group's models have engines for, in words."""
    needing = ((demand.model, demand.architectures) for demand in group.demands if demand.architectures is not None)
    return ", ".join(f"{model} has engines for {listed(sorted(have)) or 'nothing'}" for model, have in needing)


def architectures(nodes: Iterable[Node], group: Group) -> str:
    """Return the other architectures of nodes, as `9.0 (a, b)`."""
    on_gpu = any(not demand.footprint.on_cpu for demand in group.demands if demand.architectures is not None)
    names_of: dict[str, list[str]] = {}
    for node in nodes:
        names_of.setdefault(node.architecture(on_gpu and bool(gpus_of(node))) or "GPUs of no known kind", []).append(
            node.name
        )
    return listed(f"{what} ({listed(names, _NAMED, ', ')})" for what, names in sorted(names_of.items()))


def all_left(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica where every GPU that others do not hold is to be left."""
    layout = view.layout
    held = any(server.gpus for server in layout.servers.values())
    if held or any(layout.unallocated.values()) or not layout.topology.leaving:
        return None
    nodes = (layout.topology.nodes[name] for name in layout.topology.leaving)
    reasons = sorted({gpu.closed for node in nodes for gpu in node.gpus if gpu.leaving})
    return Diagnosis(
        Reason.NO_FREE_GPUS,
        f"{replica.group.name} needs a GPU, and all that are free are to be left ({listed(reasons, _NAMED)}). Add a "
        "GPU, or remove what keeps servers away.",
    )

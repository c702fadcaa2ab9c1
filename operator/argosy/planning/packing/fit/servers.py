"""Rules on servers: how large one may be, how many there are, and what else is on one."""

from dataclasses import replace

from argosy.api import Reason
from argosy.planning.amounts import gib, quantity
from argosy.planning.nodes.device_names import device_of
from argosy.planning.nodes.slices import is_slice
from argosy.planning.packing.fit.fit_limits import Diagnosis, hardest, limit_of, need_text
from argosy.planning.packing.fit.view import FitView
from argosy.planning.packing.layout import Replica, Topology
from argosy.planning.packing.scoring import fits


def too_large(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a model that no empty node could take, or models that share a server and that none could take
    together."""
    topology = view.bare.topology
    if not topology.cpu_only and (limit := limit_of(view.bare, replica.group.demands)):
        return limit
    if fits(view.bare, replica):
        return None
    if len(replica.group.demands) == 1:
        (demand,) = replica.group.demands
        return Diagnosis(
            Reason.GPU_TOO_SMALL,
            f"{demand.model} needs {need_text(demand)}, and no empty server has both its memory and its compute; "
            f"{_largest(topology)}. Shrink it, raise maxGpusPerServer, or add a larger node.",
        )
    models = ", ".join(f"{d.model} ({need_text(d)})" for d in replica.group.demands if not d.footprint.on_cpu)
    return Diagnosis(
        Reason.GROUP_TOO_LARGE,
        f"these must share one server: {models}; {_largest(topology)}. Shrink them, let fewer models share it "
        "(split the ensemble, or drop an affinity), raise maxGpusPerServer, or add a larger node.",
    )


def _largest(topology: Topology) -> str:
    """Return the largest amount that one server may have, in words."""
    if topology.cpu_only:
        machine, memory = max(topology.cpu_memory.items(), key=lambda item: item[1])
        return f"the most memory of one machine is {gib(memory)}, on {machine}"
    unsliced = {node: [size for at, size in gpus.items() if not is_slice(at)] for node, gpus in topology.usable.items()}
    node, gpus = max(unsliced.items(), key=lambda item: len(item[1]))
    if not gpus:
        every = [(size, name, at) for name, of in topology.usable.items() for at, size in of.items()]
        largest, node, at = max(every, key=lambda one: one[0])
        name = device_of(topology.nodes[node], at)
        return f"a server has one slice, and the largest has {gib(largest)}, {name} of node {node}"
    most_gpus = f"node {node} has the most GPUs, {len(gpus)} with {gib(max(gpus))} usable each"
    limit = topology.facts.max_gpus_per_server
    return most_gpus if limit is None else f"{most_gpus}, and maxGpusPerServer allows {limit}"


def server_limit(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if the pool might have a further server."""
    layout, facts = view.layout, view.layout.topology.facts
    unlimited = replace(layout.topology, facts=replace(facts, max_servers=None))
    if facts.max_servers is None or not fits(replace(layout, topology=unlimited), replica):
        return None
    return Diagnosis(
        Reason.SERVER_LIMIT,
        f"replica {replica.index + 1} of {replica.group.name} needs a server of its own, and the pool may "
        f"have {quantity(facts.max_servers, 'server')}. Raise its maxServers (or replicas, where that is set), "
        "or ask for fewer replicas.",
    )


def withheld(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if others did not hold GPUs of these nodes."""
    layout = view.layout
    none_left = not any(layout.topology.usable.values())
    if not view.holders or not (none_left or fits(view.full, replica)):
        return None
    demand = hardest(list(replica.group.demands))
    total = sum(len(usable) for usable in view.full.topology.usable.values())
    more = quantity(max(1, demand.footprint.gpus), "GPU")
    return Diagnosis(
        Reason.NO_FREE_GPUS,
        f"{demand.model} needs {need_text(demand)}, and of the pool's {quantity(total, 'GPU')} "
        f"{view.out_of_reach}. {view.way_out}, or add {more}.",
    )


def apart(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if no other replica were on that server."""
    stranger = Replica(replace(replica.group, name=f"{replica.group.name} "), replica.index)
    if not view.layout.nodes_with(replica.group.name) or not fits(view.layout, stranger):
        return None
    return Diagnosis(
        Reason.REPLICAS_APART,
        f"replica {replica.index + 1} of {replica.group.name} fits only on a server that has one already, "
        "and replicas stay apart. Ask for fewer replicas, raise instances instead, or add a GPU.",
    )


def all_have_one(replica: Replica) -> Diagnosis:
    """Return the diagnosis of a replica for which there are only servers that have another one, and no room for two."""
    return Diagnosis(
        Reason.REPLICAS_APART,
        f"every server that could have replica {replica.index + 1} of {replica.group.name} has one already, and "
        "replicas stay apart. Ask for fewer replicas, or add a GPU.",
    )

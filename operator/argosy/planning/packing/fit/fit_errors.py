"""Fit errors of a replica: the first rule that stops it everywhere, the numbers, the nearest miss, the way out."""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from argosy.api import Reason
from argosy.planning.amounts import gib, kilobytes, listed, percent, quantity
from argosy.planning.facts import Demand, Group, Node, PoolFacts
from argosy.planning.nodes.reservations import withheld
from argosy.planning.packing.capacity import FreeCapacity, gpus_of
from argosy.planning.packing.equivalence import Shape, shape
from argosy.planning.packing.fit.fit_limits import Diagnosis, hardest, limit_of, need_text
from argosy.planning.packing.fit.outranked import Outranked
from argosy.planning.packing.fit.required_nodes import matching, no_match, of_matching
from argosy.planning.packing.fit.separated import in_the_way
from argosy.planning.packing.fit.spread import too_close
from argosy.planning.packing.layout import Layout, Replica, Topology
from argosy.planning.packing.scoring import fits

_NAMED = 3
"""How many holders of GPUs a message names."""


@dataclass(frozen=True, slots=True)
class FitErrors:
    """What a pool's unschedulable replicas are explained by.

    `full` is the layout with the GPUs that others hold as if they were free; `holders` has how many each holds.
    """

    layout: Layout
    full: Layout
    holders: dict[str, int]
    outranked: Outranked
    cache: dict[Shape, Diagnosis] = field(default_factory=dict)

    @classmethod
    def of(cls, layout: Layout) -> "FitErrors":
        """Return the errors of all that does not fit into `layout`."""
        facts = layout.topology.facts
        holders = withheld(layout.topology.nodes.values())
        return cls(layout, _without_holders(layout, facts) if holders else layout, holders, Outranked(layout))

    def explain(self, replica: Replica) -> Diagnosis:
        """Return why `replica` is unschedulable, and what has its capacity. The first rule that applies answers.

        Equivalent replicas are explained once, under names that nothing has, in whose place each one's own are put.
        """
        key, names = shape(replica), _names(replica)
        if key not in self.cache:
            anonymous = replica if replica.group.replicas > 1 else _renamed(replica, names)
            why = self.lack(anonymous)
            self.cache[key] = replace(why, message=f"{self.outranked.words(anonymous)}{why.message}")
        message = self.cache[key].message
        for own, stand_in in names.items():
            message = message.replace(stand_in, own[1])
        return replace(self.cache[key], message=message)

    def lack(self, replica: Replica) -> Diagnosis:
        """Return the resource that is short."""
        rules: tuple[_Rule, ...] = (
            _no_nodes,
            _no_gpus,
            _no_matching_node,
            _no_engine,
            _config_too_large,
            _too_close,
            _in_the_way,
            _too_large,
            _no_config_space,
            _server_limit,
            _withheld,
            _apart,
        )
        diagnoses = (rule(self, replica) for rule in rules)
        return next((diagnosis for diagnosis in diagnoses if diagnosis), None) or _occupied(self, replica)

    def for_engines(self, group: Group) -> "FitErrors":
        """Return the same of those nodes alone that the group has engines for."""
        nodes = self.layout.topology.nodes
        return self.of_nodes(frozenset(name for name, node in nodes.items() if group.has_engines_for(node)))

    def of_nodes(self, nodes: frozenset[str]) -> "FitErrors":
        """Return the same of these nodes alone."""
        if len(nodes) == len(self.layout.topology.nodes):
            return self
        layout, full = (view.restricted(nodes) for view in (self.layout, self.full))
        return replace(self, layout=layout, full=full, holders=withheld(layout.topology.nodes.values()))

    @property
    def by_others(self) -> str:
        """The holders of GPUs of the pool's nodes, in words."""
        ordered = sorted(self.holders.items(), key=lambda item: (-item[1], item[0]))
        counts = ", ".join(f"{count} by {holder}" for holder, count in ordered[:_NAMED])
        rest = ordered[_NAMED:]
        return counts + (f", {sum(count for _, count in rest)} by {len(rest)} others" if rest else "")


def _names(replica: Replica) -> dict[tuple[str, str], str]:
    """Return placeholders for the names of a group and of its models, in the order of these."""
    models = sorted(demand.model for demand in replica.group.demands)
    return {("group", replica.group.name): "\0group\0"} | {
        ("model", name): f"\0{at:04}\0" for at, name in enumerate(models)
    }


def _renamed(replica: Replica, names: Mapping[tuple[str, str], str]) -> Replica:
    group = replica.group
    demands = tuple(replace(demand, model=names["model", demand.model]) for demand in group.demands)
    return replace(replica, group=replace(group, name=names["group", group.name], demands=demands))


_Rule = Callable[[FitErrors, Replica], Diagnosis | None]


def _without_holders(layout: Layout, facts: PoolFacts) -> Layout:
    nodes = tuple(
        replace(node, gpus=tuple(replace(gpu, withheld_by="", reclaimable=False) for gpu in node.gpus))
        for node in facts.nodes
    )
    topology = Topology.of(replace(facts, nodes=nodes))
    free = {
        name: tuple(sorted({*layout.unallocated[name], *(usable.keys() - layout.topology.usable[name].keys())}))
        for name, usable in topology.usable.items()
    }
    return Layout(topology, layout.servers, free)


def _no_nodes(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    topology = errors.layout.topology
    if topology.nodes:
        return None
    return Diagnosis(
        Reason.NO_NODES,
        f"pool {topology.facts.pool} has no ready node: nodeSelector and tolerations match none. "
        "Change them, or add a node that they match.",
    )


def _no_gpus(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    topology = errors.layout.topology
    needs = [demand for demand in replica.group.demands if not demand.footprint.on_cpu]
    if any(gpus_of(node) for node in topology.nodes.values()) or not needs:
        return None
    if topology.cpu_only and all(demand.footprint.gpus <= 1 for demand in needs):
        return None
    demand = hardest(needs)
    return Diagnosis(
        Reason.NO_GPUS,
        f"{demand.model} needs {need_text(demand)}, and no ready node of pool {topology.facts.pool} "
        "has a GPU. Add a node with GPUs; if there is one, check that its driver and device plugin report "
        "nvidia.com/gpu.",
    )


def _no_matching_node(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    """Diagnose a model that requires other nodes, or that fits only on nodes that it may not have."""
    nodes = list(errors.layout.topology.nodes.values())
    matches = matching(nodes, replica.group)
    if len(matches) == len(nodes):
        return None
    if not matches:
        return no_match(nodes, replica.group)
    why = errors.of_nodes(matches).lack(replica)
    return Diagnosis(why.reason, f"{why.message} {of_matching(nodes, len(matches), replica.group)}")


def _no_engine(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    """Diagnose a model whose engines are for other nodes, or that fits only where there is none for it."""
    nodes, group = errors.layout.topology.nodes, replica.group
    built = errors.for_engines(group)
    if built is errors:
        return None
    if not built.layout.topology.nodes:
        return Diagnosis(
            Reason.NO_ENGINE_FOR_ARCHITECTURE,
            f"{_engines(group)}, and the pool's nodes have {_architectures(nodes.values(), group)}. Add a node that "
            "there is an engine for, or see the condition EngineReady for why there is none.",
        )
    why = built.lack(replica)
    others = tuple(node for node in nodes.values() if not group.has_engines_for(node))
    return Diagnosis(
        why.reason,
        f"{why.message} Of {quantity(len(nodes), 'node')} the pool has {len(nodes) - len(others)} that it has "
        f"engines for: {_engines(group)}, and others have {_architectures(others, group)}.",
    )


def _engines(group: Group) -> str:
    """Return what a group's models have engines for, in words."""
    needing = ((demand.model, demand.architectures) for demand in group.demands if demand.architectures is not None)
    return ", ".join(f"{model} has engines for {listed(sorted(have)) or 'nothing'}" for model, have in needing)


def _architectures(nodes: Iterable[Node], group: Group) -> str:
    """Return the other architectures of nodes, as `9.0 (a, b)`."""
    on_gpu = any(not demand.footprint.on_cpu for demand in group.demands if demand.architectures is not None)
    names_of: dict[str, list[str]] = {}
    for node in nodes:
        names_of.setdefault(node.architecture(on_gpu and bool(gpus_of(node))) or "GPUs of no known kind", []).append(
            node.name
        )
    return listed(f"{what} ({listed(names, _NAMED, ', ')})" for what, names in sorted(names_of.items()))


def _config_too_large(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    """Diagnose a group whose rendered configuration alone is larger than one server's documents may be."""
    group, most = replica.group, errors.layout.topology.facts.placed_bytes
    if group.size <= most:
        return None
    models = listed((demand.model for demand in group.demands), _NAMED, ", ")
    return Diagnosis(
        Reason.CONFIG_TOO_LARGE,
        f"the configuration of {models} takes up to {kilobytes(group.size)} of a server's ConfigMap, which may have "
        f"{kilobytes(most)} for all that the server serves. Shorten spec.config, or what else is long in the manifest.",
    )


def _no_config_space(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if its server's documents were smaller."""
    layout, facts = errors.layout, errors.layout.topology.facts
    endless = replace(facts, placed_bytes=sys.maxsize, staying_bytes=sys.maxsize)
    if not fits(replace(layout, topology=replace(layout.topology, facts=endless)), replica):
        return None
    return Diagnosis(
        Reason.NO_CONFIG_SPACE,
        f"the configuration of {replica.group.name} takes up to {kilobytes(replica.group.size)} of its server's "
        f"ConfigMap, and no server that has room for it otherwise has so much left of {kilobytes(facts.placed_bytes)}. "
        f"Let there be another server: {_for_another_server(layout, replica)}; or shorten spec.config of what is "
        "there.",
    )


def _for_another_server(layout: Layout, replica: Replica) -> str:
    """Return what has to be done for it, in words. On processors there may always be one more within maxServers."""
    facts, more = layout.topology.facts, "add a GPU"
    if facts.max_servers is None or len(layout.servers) < facts.max_servers:
        return more
    raised = "raise the pool's maxServers (or replicas, where that is set)"
    unlimited = replace(layout, topology=replace(layout.topology, facts=replace(facts, max_servers=None)))
    return raised if fits(unlimited, replica) else f"{raised} and {more}"


def _too_large(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    """Diagnose a model that no empty node could take, or models of an ensemble that none could take together."""
    topology = errors.full.topology
    if not topology.cpu_only and (limit := limit_of(topology, replica.group.demands)):
        return limit
    if fits(Layout.empty(topology), replica):
        return None
    models = ", ".join(f"{d.model} ({need_text(d)})" for d in replica.group.demands if not d.footprint.on_cpu)
    return Diagnosis(
        Reason.GROUP_TOO_LARGE,
        f"these must share one server: {models}; {_largest(topology)}. Shrink them, split the ensemble, raise "
        "maxGpusPerServer, or add a larger node.",
    )


def _largest(topology: Topology) -> str:
    """Return the largest amount that one server may have, in words."""
    if topology.cpu_only:
        machine, memory = max(topology.cpu_memory.items(), key=lambda item: item[1])
        return f"the most memory of one machine is {gib(memory)}, on {machine}"
    node, gpus = max(topology.usable.items(), key=lambda item: len(item[1]))
    most_gpus = f"node {node} has the most GPUs, {len(gpus)} with {gib(max(gpus.values(), default=0))} usable each"
    limit = topology.facts.max_gpus_per_server
    return most_gpus if limit is None else f"{most_gpus}, and maxGpusPerServer allows {limit}"


def _server_limit(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    layout, facts = errors.layout, errors.layout.topology.facts
    unlimited = replace(layout.topology, facts=replace(facts, max_servers=None))
    if facts.max_servers is None or not fits(replace(layout, topology=unlimited), replica):
        return None
    return Diagnosis(
        Reason.SERVER_LIMIT,
        f"replica {replica.index + 1} of {replica.group.name} needs a server of its own, and the pool may "
        f"have {quantity(facts.max_servers, 'server')}. Raise its maxServers (or replicas, where that is set), "
        "or ask for fewer replicas.",
    )


def _withheld(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if others did not hold GPUs of these nodes."""
    layout = errors.layout
    none_left = not any(layout.topology.usable.values())
    if not errors.holders or not (none_left or fits(errors.full, replica)):
        return None
    demand = hardest(list(replica.group.demands))
    total = sum(len(usable) for usable in errors.full.topology.usable.values())
    withheld = sum(errors.holders.values())
    more = quantity(max(1, demand.footprint.gpus), "GPU")
    return Diagnosis(
        Reason.NO_FREE_GPUS,
        f"{demand.model} needs {need_text(demand)}, and of the pool's {quantity(total, 'GPU')} others hold {withheld}: "
        f"{errors.by_others}. Free them, or add {more}.",
    )


def _too_close(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if its group were not spread."""
    return too_close(errors.layout, replica)


def _in_the_way(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if its group were kept apart from nothing."""
    return in_the_way(errors.layout, replica)


def _apart(errors: FitErrors, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if no other replica were on that server."""
    stranger = Replica(replace(replica.group, name=f"{replica.group.name} "), replica.index)
    if not errors.layout.nodes_with(replica.group.name) or not fits(errors.layout, stranger):
        return None
    return Diagnosis(
        Reason.REPLICAS_APART,
        f"replica {replica.index + 1} of {replica.group.name} fits only on a server that has one already, "
        "and replicas stay apart. Ask for fewer replicas, raise instances instead, or add a GPU.",
    )


def _occupied(errors: FitErrors, replica: Replica) -> Diagnosis:
    """Diagnose a replica that would fit an empty pool, where others are in its way."""
    demand = hardest(list(replica.group.demands))
    if errors.layout.topology.cpu_only:
        return _no_cpu_memory(errors.layout, replica)
    if demand.footprint.exclusive:
        return _no_free_gpus(errors, demand)
    return _no_free_memory(errors, demand, together=len(replica.group.demands) > 1)


def _no_free_gpus(errors: FitErrors, demand: Demand) -> Diagnosis:
    free = {node: len(gpus) for node, gpus in errors.layout.unallocated.items()}
    node = max(free, key=lambda name: free[name])
    need = need_text(demand) + (" with NVLink" if demand.footprint.gpus > 1 else "")
    return Diagnosis(
        Reason.NO_FREE_GPUS,
        f"{demand.model} needs {need} on one node; the largest free is {free[node]} on node {node}, of "
        f"{sum(map(len, errors.full.topology.usable.values()))} in the pool{_with_rest(errors)}. Remove or shrink a "
        f"model, or add {quantity(demand.footprint.gpus, 'GPU')}.",
    )


def _no_free_memory(errors: FitErrors, demand: Demand, together: bool) -> Diagnosis:
    """Diagnose a replica for which no GPU has enough left; the nearest miss is named."""
    layout = errors.layout
    left_over = [(server.node, gpu, left) for server in layout.servers.values() for gpu, left in server.free.items()]
    free = [
        (node, gpu, layout.topology.empty_gpu(node, gpu)) for node, gpus in layout.unallocated.items() for gpu in gpus
    ]
    node, gpu, left = min([*left_over, *free], key=lambda entry: (max(_shortage(demand, entry[2])), entry[:2]))
    reserved = _reserved(demand for server in layout.servers.values() for demand in server.demands_on(node, gpu))
    ensemble = ", together with the rest of its ensemble on one server" if together else ""
    return Diagnosis(
        Reason.NO_FREE_MEMORY,
        f"{demand.model} needs {need_text(demand)}{ensemble}; the nearest miss is GPU {gpu} of node {node} "
        f"with {gib(left.memory)} and {percent(left.compute)} free{reserved}{_with_rest(errors)}. Remove or shrink a "
        "model, or add a GPU.",
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


def _with_rest(errors: FitErrors) -> str:
    """Return the GPUs of the pool that are out of reach, as a further clause; empty if there are none."""
    return f"; others hold GPUs too: {errors.by_others}" if errors.holders else ""


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

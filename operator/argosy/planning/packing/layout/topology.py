"""The nodes of a pool as packing sees them, which do not change while it is packed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from argosy.planning.facts import Group, Node, PoolFacts
from argosy.planning.nodes.slices import is_dra
from argosy.planning.packing.capacity import FreeCapacity, cpu_memory_of, gpus_of, is_cpu_only
from argosy.planning.packing.layout.limits import Limits, limits_by_group
from argosy.planning.requirements import label_keys
from argosy.planning.spreading import HOSTNAME


@dataclass(frozen=True, slots=True)
class Topology:
    """What does not change while a pool is packed, worked out once."""

    facts: PoolFacts
    nodes: Mapping[str, Node]
    usable: Mapping[str, Mapping[int, int]]  # node → device index → bytes
    empty: Mapping[str, Mapping[int, FreeCapacity]]  # node → device index → what is left where nothing sits on it
    cpu_memory: Mapping[str, int]  # node → bytes
    cpu_total: Mapping[str, int]  # node → bytes, with the headroom
    cpu_only: bool  # CPU devices serve what asks for a GPU
    running: Mapping[str, frozenset[int]]  # server that runs now → device indexes
    in_use: Mapping[str, frozenset[int]]  # node → device indexes of servers that run now, also of other pools
    kinds: Mapping[str, int]  # node → the same number as for every node that is like it
    leaving: Mapping[str, frozenset[int]]  # node → indexes of devices that are to be left; none of other nodes
    suspect: frozenset[str]  # nodes with a cordoned GPU, which a device plugin may hand out for another one
    limits: Mapping[str, Limits]  # group whose replicas have to be apart → replicas of each domain

    @classmethod
    def of(cls, facts: PoolFacts) -> "Topology":
        """Return the topology of one pool: its ready nodes, in the order of their names."""
        nodes = {node.name: node for node in sorted(facts.nodes, key=lambda node: node.name) if node.ready}
        empty = {node.name: _empty(node, facts.headroom) for node in nodes.values()}
        usable = {name: {index: gpu.memory for index, gpu in gpus.items()} for name, gpus in empty.items()}
        labels = _label_keys(facts)
        in_use = {name: frozenset(gpu.index for gpu in node.gpus if gpu.reclaimable) for name, node in nodes.items()}
        for server in facts.current:
            in_use[server.node] = in_use.get(server.node, frozenset()) | set(server.gpus)
        return cls(
            facts=facts,
            nodes=nodes,
            usable=usable,
            empty=empty,
            cpu_memory={node.name: cpu_memory_of(node, facts.headroom) for node in nodes.values()},
            cpu_total={node.name: cpu_memory_of(node, headroom=0) for node in nodes.values()},
            cpu_only=is_cpu_only(facts),
            running={server.name: frozenset(server.gpus) for server in facts.current},
            in_use=in_use,
            kinds=_kinds(nodes.values(), in_use, labels),
            leaving={name: left for name, node in nodes.items() if (left := _leaving(node))},
            suspect=frozenset(node.name for node in nodes.values() if _is_suspect(node)),
            limits=limits_by_group(facts.groups, list(nodes.values()), usable, labels),
        )

    def part(self, nodes: Collection[str], groups: Sequence[Group]) -> "Topology":
        """Return the topology of some nodes for some groups, as if the pool had no others."""
        return replace(Topology.of(self.facts.part(nodes, groups)), cpu_only=self.cpu_only)

    def limits_of(self, group: Group) -> Limits:
        """Return how many replicas each domain may have of a group; nothing where it is not spread."""
        return self.limits.get(group.name, ()) if group.spread_required else ()

    @property
    def taken(self) -> frozenset[str]:
        """The names that no new server gets."""
        return self.facts.taken | self.running.keys()

    def empty_gpu(self, node: str, index: int) -> FreeCapacity:
        """Return what is left on a GPU that nothing sits on."""
        return self.empty[node][index]


def _empty(node: Node, headroom: int) -> dict[int, FreeCapacity]:
    """Return what is left on each GPU that may be planned with, while nothing sits on it."""
    return {gpu.index: FreeCapacity.of_gpu(gpu, headroom) for gpu in gpus_of(node) if not gpu.withheld_by}


def _leaving(node: Node) -> frozenset[int]:
    return frozenset(gpu.index for gpu in node.gpus if gpu.leaving and not gpu.withheld_by)


def _label_keys(facts: PoolFacts) -> tuple[str, ...]:
    """Return the labels by which a node may suit a group and not another one."""
    required = label_keys(demand.requires for group in facts.groups for demand in group.demands)
    spread = (group for group in facts.groups if group.replicas > 1 or group.spread_required)
    spreads = {one.key for group in spread for one in group.spread}
    return tuple(sorted(required | (spreads - {HOSTNAME})))


def _kinds(nodes: Iterable[Node], in_use: Mapping[str, frozenset[int]], labels: Sequence[str]) -> dict[str, int]:
    numbers: dict[object, int] = {}
    return {node.name: numbers.setdefault(_kind(node, in_use[node.name], labels), len(numbers)) for node in nodes}


def _kind(node: Node, in_use: frozenset[int], labels: Sequence[str]) -> object:
    """Return a value that is the same for interchangeable nodes.

    An index that follows from a device's name does not say what the device is like: its place among the node's devices
    stands for it.
    """
    number = {gpu.index: at if is_dra(gpu.index) else gpu.index for at, gpu in enumerate(node.gpus)}
    devices = tuple(
        (number[gpu.index], gpu.memory, gpu.compute, gpu.is_cpu) for gpu in node.gpus if not gpu.withheld_by
    )
    return (
        devices,
        _is_suspect(node),
        tuple(frozenset(number.get(index, index) for index in joined) for joined in node.nvlink),
        frozenset(number.get(index, index) for index in in_use),
        node.architecture(on_gpu=True),
        node.architecture(on_gpu=False),
        node.product,
        tuple(node.labels.get(key) for key in labels),
    )


def _is_suspect(node: Node) -> bool:
    return any(gpu.cordoned for gpu in node.gpus)

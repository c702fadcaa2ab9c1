"""Types of nodes that a pool knows: what a further node of each would offer."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from argosy.planning.facts import Footprint, Gpu, Group, Node
from argosy.planning.nodes.holders import is_of_mig
from argosy.planning.nodes.slices import is_dra, kind_of, resource_of
from argosy.planning.packing.capacity import gpus_of

Labels = tuple[tuple[str, str], ...]
"""Labels that nodes must have, in order."""
_ENOUGH = 1 << 60
"""Bytes of a GPU that takes all models at once."""


def node_types(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return an empty node of each GPU product among the nodes, and of each kind of slices, the smallest GPUs first.

    Of several nodes with one product the one with the most GPUs stands for all: a placeholder asks for a number of
    GPUs, and a node autoscaler chooses a node that has them.
    """
    largest: dict[tuple[str, int], Node] = {}
    for node in sorted(nodes, key=lambda node: node.name):
        for kind in {kind_of(gpu.index) for gpu in _usable(node)}:
            part = replace(node, gpus=tuple(gpu for gpu in _usable(node) if kind_of(gpu.index) == kind))
            before = largest.get((node.product, kind))
            if before is None or _size(part) > _size(before):
                largest[node.product, kind] = part
    return tuple(sorted(map(_empty, largest.values()), key=lambda node: (_memory(node), _size(node), node.product)))


def has_dra_alone(nodes: Iterable[Node]) -> bool:
    """Return whether DRA drivers publish all GPUs of the nodes, so that no resource of a Pod asks for them."""
    indexes = [gpu.index for node in nodes for gpu in gpus_of(node)]
    return bool(indexes) and all(map(is_dra, indexes))


def types_for(groups: Sequence[Group], labels: Labels, types: Sequence[Node]) -> tuple[Node, ...]:
    """Return the types of nodes, with these labels, that may take the groups, the smallest first.

    A product that a group requires and no node has is a type, too. Where no type is known, any node is one.
    """
    required = {product for group in groups for demand in group.demands for product in demand.requires.products}
    unknown = sorted(required - {node.product for node in types})
    others = [_of_any_memory(groups, product) for product in (*unknown, *(() if types else ("",)))]
    return tuple(replace(node, labels={**node.labels, **dict(labels)}) for node in (*types, *others))


def _of_any_memory(groups: Sequence[Group], product: str) -> Node:
    """Return a node of a product of which nothing is known.

    All models share one of its GPUs as far as their compute allows, and NVLink joins all of them. So it has as many as
    the groups need on any node.
    """
    count = max((sum(_gpus(demand.footprint) for demand in group.demands) for group in groups), default=0)
    gpus = tuple(Gpu(index, _ENOUGH) for index in range(count))
    return Node("", gpus, product, nvlink=(frozenset(range(count)),))


def further(node_type: Node, count: int) -> tuple[Node, ...]:
    """Return so many nodes of a type."""
    return tuple(replace(node_type, name=f"{n:04}") for n in range(count))


def resource(node_type: Node) -> str:
    """Return the resource by which Pods ask for the GPUs of a type."""
    return resource_of(node_type.gpus[0].index)


def _usable(node: Node) -> tuple[Gpu, ...]:
    """Return the GPUs of a node that a server could have if nothing held them, of those that have a resource's name."""
    able = (gpu for gpu in gpus_of(node) if not is_dra(gpu.index))
    return tuple(gpu for gpu in able if not is_of_mig(gpu.withheld_by))


def _size(node: Node) -> tuple[int, int]:
    """Return the GPUs of a node, and the most that NVLink joins."""
    return len(gpus_of(node)), max(map(len, node.nvlink), default=1)


def _memory(node: Node) -> int:
    return max(gpu.memory for gpu in gpus_of(node))


def _empty(node: Node) -> Node:
    gpus = tuple(Gpu(gpu.index, gpu.memory, compute=gpu.compute) for gpu in node.gpus)
    return replace(
        node, name="", gpus=gpus, taints=(), ready=True, schedulable=True, unready_since=None, stale=False, lost=False
    )


def _gpus(need: Footprint) -> int:
    return need.gpus if need.exclusive else 0 if need.on_cpu else need.shares

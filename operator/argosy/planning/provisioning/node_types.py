"""Types of nodes that a pool knows: what a further node of each would offer."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from argosy.planning.facts import Footprint, Gpu, Group, Node
from argosy.planning.packing.capacity import gpus_of

Labels = tuple[tuple[str, str], ...]
"""Labels that nodes must have, in order."""
_ENOUGH = 1 << 60
"""Bytes of a GPU that takes all models at once."""


def node_types(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return an empty node of each GPU product among the nodes, the smallest GPUs first.

    Of several nodes with one product the one with the most GPUs stands for all: a placeholder asks for a number of
    GPUs, and a node autoscaler chooses a node that has them.
    """
    largest: dict[str, Node] = {}
    for node in sorted(nodes, key=lambda node: node.name):
        before = largest.get(node.product)
        if gpus_of(node) and (before is None or _size(node) > _size(before)):
            largest[node.product] = node
    return tuple(sorted(map(_empty, largest.values()), key=lambda node: (_memory(node), _size(node), node.product)))


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


def _size(node: Node) -> tuple[int, int]:
    """Return the GPUs of a node, and the most that NVLink joins."""
    return len(gpus_of(node)), max(map(len, node.nvlink), default=1)


def _memory(node: Node) -> int:
    return max(gpu.memory for gpu in gpus_of(node))


def _empty(node: Node) -> Node:
    gpus = tuple(Gpu(gpu.index, gpu.memory) for gpu in gpus_of(node))
    return replace(
        node, name="", gpus=gpus, taints=(), ready=True, schedulable=True, unready_since=None, stale=False, lost=False
    )


def _gpus(need: Footprint) -> int:
    return need.gpus if need.exclusive else 0 if need.on_cpu else need.shares

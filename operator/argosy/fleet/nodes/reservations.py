"""GPUs that others hold: Kubernetes counts GPUs and does not say which, so which of them is settled here."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from argosy.fleet.facts import Node

Device = tuple[str, int]
"""A node and the index of one of its GPUs."""


def without(
    nodes: Iterable[Node], gpus: Mapping[str, int], taken: Collection[Device] = (), own: Collection[Device] = ()
) -> tuple[Node, ...]:
    """The nodes less the GPUs that others hold.

    `taken` are those of other pools' servers. `gpus` counts, by node, those of Pods that are not ours: they are the
    highest indexes that are neither `taken` nor the `own` ones of this pool's servers, so what runs keeps its own.
    """
    others, ours = set(taken), set(own)
    return tuple(_less(node, gpus.get(node.name, 0), others, ours) for node in nodes)


def _less(node: Node, count: int, taken: set[Device], own: set[Device]) -> Node:
    real = [gpu.index for gpu in node.gpus if not gpu.is_cpu]
    ours = [index for index in real if (node.name, index) in taken]
    spare = [index for index in real if (node.name, index) not in taken and (node.name, index) not in own]
    held = {*ours, *sorted(spare, reverse=True)[:count]}
    if not held:
        return node
    linked = tuple(group - held for group in node.nvlink)
    left = tuple(gpu for gpu in node.gpus if gpu.is_cpu or gpu.index not in held)
    return replace(node, gpus=left, nvlink=tuple(group for group in linked if len(group) > 1))

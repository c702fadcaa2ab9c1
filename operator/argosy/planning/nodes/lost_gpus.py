"""The GPUs that a node has lost.

Kubernetes counts GPUs and does not say which. Where a node reports fewer than its servers have, a server that answers
keeps its GPUs, and one with device errors or without an answer gives way.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from argosy.planning.facts import CurrentServer, Device, Node, ServerReport
from argosy.planning.nodes.reservations import devices


@dataclass(frozen=True, slots=True)
class GpuUse:
    """GPUs that servers of all pools have: all of them (`assigned`), and those whose servers answer.

    `failing`: those with device errors, cordoned or not.
    """

    assigned: Collection[Device]
    answering: Collection[Device]
    failing: Collection[Device] = ()

    def rank(self, device: Device) -> int:
        """Return how late it gives way: what has device errors first, then what is free, what answers last."""
        if device in self.failing:
            return 3
        if device in self.answering:
            return 0
        return 1 if device in self.assigned else 2


def answering(servers: Iterable[CurrentServer], reports: Iterable[ServerReport]) -> set[Device]:
    """Return the GPUs of those servers of one pool that answer, by reports that have not expired."""
    heard = {report.name for report in reports if report.ready and not report.expired}
    return devices(server for server in servers if server.name in heard)


def short(nodes: Iterable[Node], served: Collection[Device]) -> set[str]:
    """Return the names of the nodes that report fewer GPUs than servers count there."""
    most: dict[str, int] = {}
    for name, index in served:
        most[name] = max(index, most.get(name, -1))
    return {node.name for node in nodes if 0 < _count(node) <= most.get(node.name, -1)}


def without_lost(nodes: Iterable[Node], use: GpuUse) -> tuple[Node, ...]:
    """Return the nodes; on each that is short of GPUs, those are gone that give way first.

    A server that answers and has no device error has its GPUs, whatever the node's count says: the device plugin takes
    a GPU from the count and not from the Pod that uses it.
    """
    every = tuple(nodes)
    lacking = short(every, use.assigned)
    return tuple(_without_lost(node, use) if node.name in lacking else node for node in every)


def _count(node: Node) -> int:
    """Return the number of GPUs that a node reports; 0 if MIG divides some, which are reported by other names."""
    gpus = [gpu for gpu in node.gpus if not gpu.is_cpu]
    return 0 if any(gpu.withheld_by for gpu in gpus) else len(gpus)


def _without_lost(node: Node, use: GpuUse) -> Node:
    count = _count(node)
    indexes = range(1 + max(index for name, index in use.assigned if name == node.name))
    ranks = {index: use.rank((node.name, index)) for index in indexes}
    serving = sum(rank == 0 for rank in ranks.values())
    left = sorted(sorted(indexes, key=lambda index: (ranks[index], index))[: max(count, serving)])
    all_joined = node.nvlink == (frozenset(range(count)),)
    nvlink = (frozenset(left),) if all_joined else tuple(joined & set(left) for joined in node.nvlink)
    gpu = next(gpu for gpu in node.gpus if not gpu.is_cpu)
    return replace(node, gpus=tuple(replace(gpu, index=index, uuid="") for index in left), nvlink=nvlink)

"""The GPUs that a node has lost.

Kubernetes counts GPUs and does not say which. Where a node reports fewer than its servers have, a server that answers
keeps its GPUs, and one with device errors or without an answer gives way.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from argosy.planning.facts import CurrentServer, Device, Gpu, Node, ServerReport
from argosy.planning.nodes.reservations import devices
from argosy.planning.nodes.slices import is_dra, kind_of


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
    """Return the names of the nodes that report fewer GPUs, or slices of a kind, than servers count there.

    Devices of DRA drivers are not counted: each is itself, and none stands for another one.
    """
    most: dict[tuple[str, int], int] = {}
    for name, index in served:
        if not is_dra(index):
            kind = kind_of(index)
            most[name, kind] = max(index - kind, most.get((name, kind), -1))
    kinds = {kind for _, kind in most}
    every = ((node, kind) for node in nodes for kind in kinds)
    return {node.name for node, kind in every if 0 < _count(node, kind) <= most.get((node.name, kind), -1)}


def without_lost(nodes: Iterable[Node], use: GpuUse) -> tuple[Node, ...]:
    """Return the nodes; on each that is short of GPUs, those are gone that give way first.

    A server that answers and has no device error has its GPUs, whatever the node's count says: the device plugin takes
    a GPU from the count and not from the Pod that uses it.
    """
    every = tuple(nodes)
    lacking = short(every, use.assigned)
    return tuple(_without_lost(node, use) if node.name in lacking else node for node in every)


def _of_kind(node: Node, kind: int) -> list[Gpu]:
    return [gpu for gpu in node.gpus if not gpu.is_cpu and kind_of(gpu.index) == kind]


def _count(node: Node, kind: int) -> int:
    """Return the number of GPUs, or of slices of a kind, that a node reports; 0 if MIG divides some of these GPUs into
    slices that cannot be used.
    """
    gpus = _of_kind(node, kind)
    return 0 if any(gpu.withheld_by for gpu in gpus) else len(gpus)


def _without_lost(node: Node, use: GpuUse) -> Node:
    plugin = (index for name, index in use.assigned if name == node.name and not is_dra(index))
    kinds = sorted({kind_of(index) for index in plugin})
    for kind in kinds:
        if _count(node, kind) > 0:
            node = _without_lost_of_kind(node, use, kind)
    return node


def _without_lost_of_kind(node: Node, use: GpuUse, kind: int) -> Node:
    gpus = _of_kind(node, kind)
    mine = {index for name, index in use.assigned if name == node.name and kind_of(index) == kind}
    indexes = range(kind, 1 + max(mine | {gpu.index for gpu in gpus}))
    ranks = {index: use.rank((node.name, index)) for index in indexes}
    serving = sum(rank == 0 for rank in ranks.values())
    left = sorted(sorted(indexes, key=lambda index: (ranks[index], index))[: max(len(gpus), serving)])
    others = tuple(gpu for gpu in node.gpus if gpu not in gpus)
    retained = tuple(sorted((*(replace(gpus[0], index=index, uuid="") for index in left), *others), key=_index))
    return replace(node, gpus=retained, nvlink=_joined(node, set(left)) if not kind else node.nvlink)


def _joined(node: Node, left: set[int]) -> tuple[frozenset[int], ...]:
    """Return the groups of GPUs that NVLink joins, of those that are left; all of them where it joined all."""
    every = frozenset(gpu.index for gpu in _of_kind(node, 0))
    return (frozenset(left),) if node.nvlink == (every,) else tuple(joined & left for joined in node.nvlink)


def _index(gpu: Gpu) -> int:
    return gpu.index

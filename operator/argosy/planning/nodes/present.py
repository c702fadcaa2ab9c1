"""The devices of nodes as servers count on them: what they report, what comes back, what is gone and still in use."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from argosy.planning.facts import Device, Gpu, Node
from argosy.planning.nodes.dra.partitions import Offers
from argosy.planning.nodes.holds import CountHolds
from argosy.planning.nodes.lost_gpus import GpuUse, short, without_lost

_NO_HOLDS = CountHolds()
_CLOSED = "the node no longer offers it"


def present(
    nodes: Iterable[Node],
    assigned: Collection[Device],
    use: Callable[[], GpuUse],
    holds: CountHolds = _NO_HOLDS,
    offers: Offers | None = None,
) -> tuple[Node, ...]:
    """Return the nodes with the devices that count. `assigned`: those that servers have; `use` is asked only where a
    node lacks some; `offers`: the choices of the call before.
    """
    every = tuple(nodes)
    if holds.holds or short(every, assigned) or any(node.former for node in every):
        gpu_use = use()
        held = without_lost(holds.applied(every, gpu_use.assigned, gpu_use.failing), gpu_use)
        every = tuple(_with_former(node, gpu_use) if node.former else node for node in held)
    return (offers or Offers()).of(every, assigned)


def _with_former(node: Node, use: GpuUse) -> Node:
    """Return the node with the devices that it no longer reports and whose servers answer.

    A layout of slices that changes takes nothing from a process that runs. Where the node's devices are not known as a
    whole, also those stay whose servers do not answer.
    """
    here = {gpu.index for gpu in node.gpus}
    more = [replace(gpu, closed=_CLOSED) for gpu in node.former if gpu.index not in here and _stays(node, gpu, use)]
    if not more:
        return node
    with_cpu = [gpu for gpu in node.gpus if not gpu.is_cpu]
    return replace(node, gpus=tuple(sorted([*with_cpu, *more], key=lambda gpu: gpu.index)))


def _stays(node: Node, gpu: Gpu, use: GpuUse) -> bool:
    device = node.name, gpu.index
    return device in use.assigned and device not in use.failing and (node.stale or device in use.answering)

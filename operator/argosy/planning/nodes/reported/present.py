"""The devices of nodes as servers count on them: what they report, what comes back, what is gone and still in use."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from argosy.planning.facts import Device, Gpu, Node
from argosy.planning.nodes.dra.partitions import Offers
from argosy.planning.nodes.reported.holds import CountHolds
from argosy.planning.nodes.reported.lost_gpus import GpuUse, short, without_lost

_NO_HOLDS = CountHolds()
_CLOSED = "the node no longer offers it"
_DESCRIBED = "its driver describes it otherwise since its server has it"


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
    complete list, also those stay whose servers do not answer. A device that its driver still publishes, with other
    attributes, is that device: it is there once, as its server has it.
    """
    here = {gpu.index: gpu for gpu in node.gpus if not gpu.is_cpu}
    published = {identity: gpu for gpu in here.values() if (identity := _identity(gpu))}
    renamed: dict[int, int] = {}
    for gpu in node.former:
        current = published.get(_identity(gpu) or ("", "", ""))
        if gpu.index in here:
            continue
        if current is not None and (node.name, gpu.index) in use.assigned:
            if here.pop(current.index, None) is not None:
                here[gpu.index], renamed[current.index] = _as_assigned(gpu, current), gpu.index
        elif _stays(node, gpu, use):
            here[gpu.index] = replace(gpu, closed=_CLOSED)
    if here.keys() <= {gpu.index for gpu in node.gpus}:
        return node
    nvlink = tuple(frozenset(renamed.get(index, index) for index in joined) for joined in node.nvlink)
    return replace(node, gpus=tuple(here[index] for index in sorted(here)), nvlink=nvlink)


def _identity(gpu: Gpu) -> tuple[str, str, str] | None:
    """Return driver, pool and name of a published device, by which allocations name it."""
    return (gpu.device.driver, gpu.device.pool, gpu.device.name) if gpu.device is not None else None


def _as_assigned(former: Gpu, current: Gpu) -> Gpu:
    """Return a published device, with its counters and taints, as the ResourceClaim asked for it that has it."""
    assert former.device is not None
    assert current.device is not None
    device = replace(current.device, device_class=former.device.device_class, selector=former.device.selector)
    return replace(current, index=former.index, closed=_DESCRIBED, device=device)


def _stays(node: Node, gpu: Gpu, use: GpuUse) -> bool:
    device = node.name, gpu.index
    return device in use.assigned and device not in use.failing and (node.stale or device in use.answering)

"""Remedies that free memory: of a GPU that several models share, of a host without GPUs, or by the pool's headroom."""

from collections.abc import Iterator
from dataclasses import replace

from argosy.planning.amounts import gib, percent
from argosy.planning.explanation.remedies.devices import DeviceUse, PoolDevices, Shortage, rounded_up
from argosy.planning.explanation.remedies.remedy import Remedy, RemedyKind
from argosy.planning.explanation.remedies.trial import Part
from argosy.planning.facts import Footprint, Group, Node
from argosy.planning.nodes.device_names import device_of

_TRIED = 2
"""Nodes that are tried, those with the smallest shortage."""
_LEAST_HEADROOM = 50
"""Thousandths of memory that are never given up: CUDA's contexts and fragments take some."""


def freed_memory(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield the memory and compute to be freed on one GPU, or on one host where CPUs stand in for GPUs."""
    if pool.cpu_only:
        yield from _on_host(pool, group)
        return
    tried: dict[str, Shortage] = {}
    for shortage in pool.shortages(group):
        tried.setdefault(shortage.device.node.name, shortage)
        if len(tried) == _TRIED:
            break
    for node, shortage in tried.items():
        memory, index = rounded_up(shortage.memory), shortage.device.index
        part = pool.trial.part(_with_less_compute(group, shortage.compute), [node])
        if (memory or shortage.compute) and pool.trial.fits(_grown(part, shortage.device.node, index, memory)):
            product = f" ({shortage.device.node.product})" if shortage.device.node.product else ""
            amounts = [gib(memory)] * bool(memory) + [f"{percent(shortage.compute)} of compute"] * bool(
                shortage.compute
            )
            yield Remedy(
                RemedyKind.MEMORY,
                f"free {' and '.join(amounts)} on {device_of(shortage.device.node, index)} of node {node}{product}",
            )
            return


def _with_less_compute(group: Group, compute: int) -> Group:
    """Return the group as it counts where so much compute is freed for it."""

    def less(need: Footprint) -> Footprint:
        return replace(need, compute=need.compute - compute)

    return group.with_footprints(less) if compute else group


def _grown(part: Part, node: Node, index: int, memory: int) -> Part:
    """Return the part in which a device has more memory, which is as if so much were freed there."""
    more = -(-memory * 1000 // (1000 - part.facts.headroom))
    gpus = tuple(replace(gpu, memory=gpu.memory + more) if gpu.index == index else gpu for gpu in node.gpus)
    nodes = tuple(replace(one, gpus=gpus) if one.name == node.name else one for one in part.facts.nodes)
    return replace(part, facts=replace(part.facts, nodes=nodes))


def _on_host(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    trial, need = pool.trial, sum(demand.footprint.settled for demand in group.demands)
    free = {}
    for node in pool.able(group):
        usable = sum(gpu.usable(trial.facts.headroom) for gpu in node.gpus if gpu.is_cpu)
        taken = sum(p.memory for server in trial.on_node.get(node.name, ()) for p in server.placements if not p.gpus)
        if usable >= need:
            free[node.name] = usable - taken
    if not free:
        return
    name = max(free, key=lambda one: (free[one], one))
    node, memory = trial.nodes[name], rounded_up(max(0, need - free[name]))
    if memory and trial.fits(_grown(trial.part(group, [name]), node, node.gpus[0].index, memory)):
        yield Remedy(RemedyKind.MEMORY, f"free {gib(memory)} of the memory of node {name}")


def lower_headroom(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield a lower `memoryHeadroom` by which a GPU has memory enough as it is."""
    headroom = pool.trial.facts.headroom
    needs = [demand.footprint for demand in group.demands if not demand.footprint.on_cpu]
    if not needs or pool.cpu_only:
        return
    alone = len(group.demands) > 1 or needs[0].exclusive
    largest, able = max(need.settled for need in needs), {node.name for node in pool.able(group)}
    headroom_left, node = max(
        (
            (_headroom_with(device, largest), device.node.name)
            for device in pool.devices.values()
            if device.node.name in able and not device.exclusive and not (alone and device.on)
        ),
        default=(0, ""),
    )
    if not _LEAST_HEADROOM <= headroom_left < headroom:
        return
    part = pool.trial.part(group, [node])
    if pool.trial.fits(replace(part, facts=replace(part.facts, headroom=headroom_left))):
        text = f"memoryHeadroom {percent(headroom)} → {percent(headroom_left)}, so that node {node} has the memory"
        yield Remedy(RemedyKind.SETTING, text)


def _headroom_with(device: DeviceUse, memory: int) -> int:
    """Return the thousandths, in hundredths, that may stay free on a GPU if it takes so many bytes more; negative if it
    is too small.
    """
    total = device.empty.memory + device.empty.headroom
    taken = device.empty.memory - device.left.memory
    return (total - taken - memory) * 1000 // max(1, total) // 10 * 10

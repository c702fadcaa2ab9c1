"""Which devices of a GPU may be had at once: a GPU and its partitions, which share its counters, exclude each other.

For each physical GPU there is one choice, before anything is packed. What other ResourceClaims and servers have comes
first. From what that leaves, the whole GPU is offered, or the profiles that the node's annotation names, as many of
each as fit, in its order. So whatever is placed on the devices that are offered, no counter is exceeded.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from argosy.planning.facts import Device, Gpu, Node
from argosy.planning.nodes.dra.devices import HOLDER, natural
from argosy.planning.nodes.dra.pools import profiles_of
from argosy.planning.nodes.parse import PARTITIONS

_OTHERS = "other partitions of its GPU"


def offered(nodes: Iterable[Node], assigned: Collection[Device]) -> tuple[Node, ...]:
    """Return the nodes with the devices of DRA drivers that can be had next to each other. `assigned`: those that
    servers have.
    """
    return tuple(_offered(node, assigned) if any(gpu.device for gpu in node.gpus) else node for node in nodes)


def _offered(node: Node, assigned: Collection[Device]) -> Node:
    every = [_tainted(gpu, (node.name, gpu.index) in assigned) for gpu in node.gpus]
    left = dict(node.counters)
    devices: list[Gpu] = []
    for gpu in sorted(every, key=lambda gpu: _rank(gpu, node, assigned)):
        mine = (node.name, gpu.index) in assigned
        fits = _fits(gpu, left)
        if fits and (mine or _is_foreign(gpu) or _is_offered(gpu, node)):
            _take(gpu, left)
            devices.append(_closed(gpu, node) if mine else gpu)
        elif mine:
            devices.append(replace(gpu, withheld_by=gpu.withheld_by or _OTHERS))
    return replace(node, gpus=tuple(sorted(devices, key=lambda gpu: gpu.index)))


def _rank(gpu: Gpu, node: Node, assigned: Collection[Device]) -> tuple[object, ...]:
    """Sort key of devices: those that other ResourceClaims have, those that servers have, then as they are offered;
    those that cannot be used come last, and are shown where nothing else is.
    """
    device, profiles = gpu.device, profiles_of(node)
    profile = device.profile if device is not None else ""
    name = natural(device.name) if device is not None else ()
    at = profiles.index(profile) if profile in profiles else len(profiles)
    free = (node.name, gpu.index) not in assigned
    return not _is_foreign(gpu), free, bool(gpu.withheld_by), at, bool(profile), -gpu.memory, name


def _is_foreign(gpu: Gpu) -> bool:
    """Return whether a ResourceClaim of others has the device."""
    return bool(gpu.withheld_by) and not gpu.withheld_by.startswith((HOLDER, _TAINT))


def _is_offered(gpu: Gpu, node: Node) -> bool:
    """Return whether a device may be had that nothing has. What shares no counters is as it is."""
    profiles, device = profiles_of(node), gpu.device
    return device is None or not device.consumes or not profiles or device.profile in profiles


def _closed(gpu: Gpu, node: Node) -> Gpu:
    if _is_offered(gpu, node):
        return gpu
    return replace(gpu, closed=gpu.closed or f"the node's annotation {PARTITIONS} does not name its profile")


def _fits(gpu: Gpu, left: Mapping[str, int]) -> bool:
    return gpu.device is None or all(left.get(counter, 0) >= amount for counter, amount in gpu.device.consumes)


def _take(gpu: Gpu, left: dict[str, int]) -> None:
    for counter, amount in gpu.device.consumes if gpu.device is not None else ():
        left[counter] -= amount


_TAINT = "the taint "


def _tainted(gpu: Gpu, is_assigned: bool) -> Gpu:
    """Return the device as its taint has it: free, nothing gets it; in use, only its server has it, which leaves it
    where the taint would end what runs.
    """
    device = gpu.device
    if device is None or not device.taint or gpu.withheld_by:
        return gpu
    if not is_assigned:
        return replace(gpu, withheld_by=f"{_TAINT}{device.taint} of its device")
    return replace(gpu, closed=f"its device has the taint {device.taint}", leaving=device.evicts)

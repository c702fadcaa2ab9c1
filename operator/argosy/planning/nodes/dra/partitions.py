"""Which devices of a GPU may be had at once: a GPU and its partitions, which share its counters, exclude each other.

For each physical GPU there is one choice, before anything is packed. What other ResourceClaims and servers have comes
first. From what that leaves, the whole GPU is offered, or the profiles that the node's annotation names, as many of
each as fit, in its order. So whatever is placed on the devices that are offered, no counter is exceeded.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.planning.facts import Device, Gpu, Node
from argosy.planning.nodes.dra.pools import profiles_of
from argosy.planning.nodes.holders import RESOURCE_SLICE
from argosy.planning.nodes.parse import PARTITIONS

_OTHERS = "other partitions of its GPU"
_UNNAMED = f"the node's annotation {PARTITIONS} does not name its profile"
_TAINT = "the taint "


@dataclass(slots=True)
class Offers:
    """The choices for nodes, which are reused for nodes that are the same object and have the same devices in use."""

    _choices: dict[str, tuple[Node, frozenset[int], Node]] = field(default_factory=dict)

    def of(self, nodes: Iterable[Node], assigned: Collection[Device]) -> tuple[Node, ...]:
        """Return the nodes with the devices of DRA drivers that can be had next to each other. `assigned`: those that
        servers have.
        """
        every = tuple(nodes)
        mine: dict[str, set[int]] = {node.name: set() for node in every if any(gpu.device for gpu in node.gpus)}
        for name, index in assigned if mine else ():
            if name in mine:
                mine[name].add(index)
        before, self._choices = self._choices, {}
        for node in every:
            if node.name in mine:
                former, held = before.get(node.name), frozenset(mine[node.name])
                same = former is not None and former[0] is node and former[1] == held
                self._choices[node.name] = former if former and same else (node, held, _offered(node, held))
        return tuple(self._choices[node.name][2] if node.name in mine else node for node in every)


def offered(nodes: Iterable[Node], assigned: Collection[Device]) -> tuple[Node, ...]:
    """Return the nodes as `Offers` does, once."""
    return Offers().of(nodes, assigned)


@dataclass(frozen=True, slots=True)
class _Choice:
    """What decides on the devices of a node: those that servers have (`held`), and the profiles that it names."""

    held: Collection[int]
    profiles: Sequence[str]

    def rank(self, gpu: Gpu) -> tuple[int, ...]:
        """Return the place of a device in the choice: those come first that other ResourceClaims have, then those that
        servers have, then the others as they are offered; those that cannot be used come last.
        """
        profile, order = (gpu.device.profile, gpu.device.order) if gpu.device is not None else ("", 0)
        at = self.profiles.index(profile) if profile in self.profiles else len(self.profiles)
        return (
            not _is_foreign(gpu),
            gpu.index not in self.held,
            bool(gpu.withheld_by),
            at,
            bool(profile),
            -gpu.memory,
            order,
        )

    def offers(self, gpu: Gpu) -> bool:
        """Return whether a device may be had that nothing has. What shares no counters is as it is."""
        device = gpu.device
        return device is None or not device.consumes or not self.profiles or device.profile in self.profiles


def _offered(node: Node, held: Collection[int]) -> Node:
    choice = _Choice(held, profiles_of(node))
    every = [_restricted(gpu, gpu.index in choice.held) for gpu in node.gpus]
    left = dict(node.counters)
    devices, excluded = list[Gpu](), list[Gpu]()
    for gpu in sorted(every, key=choice.rank):
        mine = gpu.index in choice.held
        if (mine or _is_foreign(gpu) or choice.offers(gpu)) and _fits(gpu, left):
            _take(gpu, left)
            devices.append(gpu if not mine or choice.offers(gpu) else replace(gpu, closed=gpu.closed or _UNNAMED))
        elif mine:
            devices.append(replace(gpu, withheld_by=gpu.withheld_by or _OTHERS))
        else:
            excluded.append(gpu)
    gpus, others = (tuple(sorted(some, key=lambda gpu: gpu.index)) for some in (devices, excluded))
    return replace(node, gpus=gpus, excluded=others)


def _is_foreign(gpu: Gpu) -> bool:
    """Return whether a ResourceClaim of others has the device."""
    return bool(gpu.withheld_by) and not gpu.withheld_by.startswith((RESOURCE_SLICE, _TAINT))


def _fits(gpu: Gpu, left: Mapping[str, int]) -> bool:
    for counter, amount in gpu.device.consumes if gpu.device is not None else ():
        if left.get(counter, 0) < amount:
            return False
    return True


def _take(gpu: Gpu, left: dict[str, int]) -> None:
    for counter, amount in gpu.device.consumes if gpu.device is not None else ():
        left[counter] -= amount


def _restricted(gpu: Gpu, is_held: bool) -> Gpu:
    """Return the device as its taint, or the fault of its pool, has it: free, nothing gets it; in use, only its server
    has it, which leaves it where the taint would end what runs.
    """
    device = gpu.device
    if device is None or not (device.taint or device.fault) or gpu.withheld_by:
        return gpu
    if device.fault:
        return (
            replace(gpu, closed=device.fault)
            if is_held
            else replace(gpu, withheld_by=f"{RESOURCE_SLICE} ({device.fault})")
        )
    if not is_held:
        return replace(gpu, withheld_by=f"{_TAINT}{device.taint} of its device")
    return replace(gpu, closed=f"its device has the taint {device.taint}", leaving=device.evicts)

"""What a pool's GPUs have left, and how far a replica is from having a place on each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from argosy.planning.explanation.remedies.trial import Trial
from argosy.planning.facts import Demand, Device, Group, Node
from argosy.planning.packing.capacity import FreeCapacity, gpus_of, is_cpu_only
from argosy.planning.plan import ServerPlan

_GIB = 1 << 30
_MIB = 1 << 20


@dataclass(slots=True)
class DeviceUse:
    """A GPU: what it is, what is left, and the replicas on it. `taken`: bytes of these."""

    node: Node
    index: int
    empty: FreeCapacity
    left: FreeCapacity
    on: list[tuple[ServerPlan, str]] = field(default_factory=list)
    taken: int = 0
    exclusive: bool = False

    @property
    def groups(self) -> list[str]:
        """The groups that have a replica on it."""
        return sorted({group for _, group in self.on})


@dataclass(frozen=True, slots=True)
class Shortage:
    """What one GPU lacks for a replica: bytes, and thousandths of compute."""

    device: DeviceUse
    memory: int
    compute: int


class PoolDevices:
    """The GPUs of a pool with what they have left."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.cpu_only = is_cpu_only(trial.facts)
        self.devices: dict[Device, DeviceUse] = {}
        for node in trial.nodes.values():
            for gpu in gpus_of(node):
                if not gpu.withheld_by:
                    empty = FreeCapacity.of_gpu(gpu, trial.facts.headroom)
                    self.devices[node.name, gpu.index] = DeviceUse(node, gpu.index, empty, empty)
        for server in trial.servers:
            self._put(server)

    def _put(self, server: ServerPlan) -> None:
        for placement in server.placements:
            for gpu in placement.gpus:
                device = self.devices.get((server.node, gpu))
                if device is not None:
                    device.left = device.left.less(self.trial.demands[placement.model].footprint)
                    device.on.append((server, placement.group))
                    device.taken += placement.memory
                    device.exclusive |= placement.exclusive

    def of_node(self, node: str) -> list[DeviceUse]:
        """Return the GPUs of a node."""
        indexes = (gpu.index for gpu in gpus_of(self.trial.nodes[node]))
        return [self.devices[node, index] for index in indexes if (node, index) in self.devices]

    def able(self, group: Group) -> list[Node]:
        """Return the nodes that a group may run on."""
        return [node for node in self.trial.nodes.values() if group.runs_on(node)]

    def shortages(self, group: Group) -> list[Shortage]:
        """Return what each GPU lacks for a group of one model that shares one, the smallest first, but for those that
        are too small when they are empty.
        """
        demand = shared_demand(group)
        if demand is None:
            return []
        may = {node.name for node in self.able(group)}
        short = [
            one for device in self.devices.values() if device.node.name in may for one in _short(device, demand, group)
        ]
        return sorted(
            short, key=lambda one: (_part(one, demand), one.device.taken, one.device.node.name, one.device.index)
        )

    def nearest(self, group: Group, nodes: Iterable[Node]) -> list[str]:
        """Return the nodes, those first on which a replica of the group is closest to a place."""
        return [node.name for node in sorted(nodes, key=lambda node: (self._distance(group, node), node.name))]

    def _distance(self, group: Group, node: Node) -> tuple[float, int, int]:
        demand, pool = shared_demand(group), self.of_node(node.name)
        parts = [_part(one, demand) for device in pool for one in _short(device, demand, group)] if demand else [0.0]
        free = sum(device.left.empty for device in pool)
        return min(parts, default=2.0), -free, -sum(device.left.memory for device in pool)


def shared_demand(group: Group) -> Demand | None:
    """Return the model of a group that has one model alone, which shares one GPU; None of any other group."""
    demand = group.demands[0]
    need = demand.footprint
    return None if len(group.demands) > 1 or need.exclusive or need.on_cpu or need.shares > 1 else demand


def _short(device: DeviceUse, demand: Demand, group: Group) -> Iterator[Shortage]:
    need = demand.footprint
    too_small = need.settled > device.empty.memory or need.compute > device.empty.compute
    if not too_small and not device.exclusive and group.name not in device.groups:
        yield Shortage(device, max(0, need.settled - device.left.memory), max(0, need.compute - device.left.compute))


def _part(shortage: Shortage, demand: Demand) -> float:
    need = demand.footprint
    return max(shortage.memory / max(1, need.settled), shortage.compute / max(1, need.compute))


def rounded_up(size: int) -> int:
    """Return bytes, rounded up to what a message shows: tenths of a GiB, or MiB."""
    tenths = -(-size * 10 // _GIB)
    return -(-tenths * _GIB // 10) if size >= _GIB else -(-size // _MIB) * _MIB

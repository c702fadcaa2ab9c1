"""What is to be placed, as numbers: a replica's models that need a GPU, the hardest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from argosy.planning.facts import Demand, Rank
from argosy.planning.packing.gpu_assignment import hardness
from argosy.planning.packing.layout import Assignment, Replica, Topology
from argosy.planning.packing.layout.limits import Limits, preferred_keys
from argosy.planning.spreading import Spread


class Need(NamedTuple):
    """What one model takes of each of its GPUs; `gpus` is 0 where it shares one. Memory in bytes."""

    settled: int
    surged: int
    compute: int
    gpus: int


@dataclass(slots=True, eq=False)
class Item:
    """A replica to place. `demands`: the positions of `needs` in its group, once for each GPU that a model shares;
    `nodes`: those that may have it, None for all; `apart`: its group has several replicas. `memory` and `compute` are
    sums over the models that share GPUs, `exclusive` is the number of GPUs of the others. `limits`: replicas of its
    group that each domain may have; `preferred`: labels by which they are apart where that takes no further GPU.
    """

    number: int
    replica: Replica
    demands: tuple[int, ...]
    needs: tuple[Need, ...]
    nodes: frozenset[int] | None
    group: str
    apart: bool
    rank: Rank
    size: int
    memory: int
    compute: int
    exclusive: int
    ties: bool
    first_gpus: bool
    limits: Limits
    preferred: tuple[str, ...]
    not_on_server: frozenset[str]
    not_on_node: frozenset[str]

    @property
    def shares_gpu(self) -> bool:
        """Whether it takes a part of one GPU, and no other."""
        return len(self.needs) == 1 and not self.exclusive

    @property
    def restricted(self) -> bool:
        """Whether it depends on what else is placed which nodes may have it."""
        return bool(self.limits or self.not_on_node)

    @property
    def separated(self) -> bool:
        """Whether there are groups that it may not be next to."""
        return bool(self.not_on_server or self.not_on_node)

    @property
    def shape(self) -> object:
        """What is the same for items of which none has a place where one of them has none."""
        own = self.group if self.apart or self.separated or self.limits else ""
        return self.needs, self.nodes, self.size, self.first_gpus, own

    def assignment(self, slots: Assignment) -> Assignment:
        """Return device indexes by demand of the group, from those by need."""
        result: dict[int, tuple[int, ...]] = {}
        for at, gpus in zip(self.demands, slots, strict=True):
            result[at] = tuple(sorted((*result.get(at, ()), *gpus)))
        return tuple(result.get(at, ()) for at in range(len(self.replica.group.demands)))


def items_of(topology: Topology, replicas: Sequence[Replica]) -> list[Item]:
    """Return the replicas as items, in the order of their names."""
    ordered = sorted(replicas, key=lambda replica: replica.key)
    allowed: dict[object, frozenset[int] | None] = {}
    keys: dict[tuple[Spread, ...], tuple[str, ...]] = {}
    items = []
    for number, replica in enumerate(ordered):
        item = _item(number, replica, _nodes(topology, replica, allowed))
        group = replica.group
        item.limits = topology.limits_of(group)
        if item.apart:
            if group.spread not in keys:
                keys[group.spread] = preferred_keys(group, topology.nodes.values())
            item.preferred = keys[group.spread]
        items.append(item)
    return items


def _nodes(topology: Topology, replica: Replica, allowed: dict[object, frozenset[int] | None]) -> frozenset[int] | None:
    """Return the numbers of the nodes that a replica may have; None for all of them."""
    key = tuple((demand.architectures, demand.requires) for demand in replica.group.demands)
    if key not in allowed:
        nodes = topology.nodes.values()
        able = frozenset(at for at, node in enumerate(nodes) if node.schedulable and replica.group.runs_on(node))
        allowed[key] = None if len(able) == len(nodes) else able
    return allowed[key]


def _item(number: int, replica: Replica, nodes: frozenset[int] | None) -> Item:
    group = replica.group
    by_hardness = sorted(
        (at for at, demand in enumerate(group.demands) if not demand.footprint.on_cpu),
        key=lambda at: (hardness(group.demands[at].footprint), group.demands[at].model),
    )
    order = [at for at in by_hardness for _ in range(group.demands[at].footprint.shares)]
    needs = tuple(_need(group.demands[at]) for at in order)
    shared = [need for need in needs if not need.gpus]
    return Item(
        number=number,
        replica=replica,
        demands=tuple(order),
        needs=needs,
        nodes=nodes,
        group=group.name,
        apart=group.replicas > 1,
        rank=replica.rank,
        size=group.size,
        memory=sum(need.settled for need in shared),
        compute=sum(need.compute for need in shared),
        exclusive=sum(need.gpus for need in needs),
        ties=len(needs) > 1 or any(need.gpus > 1 for need in needs),
        first_gpus=group.first_gpus,
        limits=(),
        preferred=(),
        not_on_server=group.not_on_server,
        not_on_node=group.not_on_node,
    )


def _need(demand: Demand) -> Need:
    footprint = demand.footprint
    return Need(footprint.settled, footprint.surged, footprint.compute, footprint.gpus)

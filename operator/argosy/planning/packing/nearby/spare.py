"""Spare capacity of a pool: what each node has left by memory and compute alone, whatever other rules say of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from argosy.planning.facts import Footprint, Node
from argosy.planning.packing.capacity import FULL_COMPUTE, gpus_of
from argosy.planning.packing.layout import Layout


class Seat(NamedTuple):
    """What a model takes of each of its GPUs on a node. Memory in bytes, compute in thousandths."""

    node: str
    gpus: tuple[int, ...]
    memory: int
    compute: int
    exclusive: bool


class OpenGpu(NamedTuple):
    """A GPU that models share, or may. `memory` and `compute` are left of it, of the `usable` bytes."""

    memory: int
    compute: int
    usable: int

    def waste(self, need: Footprint) -> int | None:
        """Return the thousandths of both resources that stay unused next to a model; None where it does not fit."""
        memory, compute = self.memory - need.settled, self.compute - need.compute
        return None if memory < 0 or compute < 0 else memory * FULL_COMPUTE // max(1, self.usable) + compute


@dataclass(frozen=True, slots=True)
class SpareNode:
    """A node that takes new models: its open GPUs, and those that nothing sits on, by device index."""

    node: Node
    open: tuple[OpenGpu, ...]
    empty: Mapping[int, OpenGpu]

    def waste(self, needs: Iterable[Footprint]) -> int | None:
        """Return what models leave unused of the open GPUs that each fits best; None where one of them fits on none."""
        total = 0
        for need in needs:
            fits = [waste for gpu in self.open if (waste := gpu.waste(need)) is not None]
            if not fits:
                return None
            total += min(fits)
        return total


def spare_nodes(nodes: Iterable[Node], headroom: int, seats: Iterable[Seat]) -> list[SpareNode]:
    """Return the spare capacity of all nodes that take new models, in the order of their names."""
    taken: dict[str, dict[int, tuple[int, int]]] = {}
    for node, gpus, memory, compute, exclusive in seats:
        here = taken.setdefault(node, {})
        for gpu in gpus:
            more, busier = (-1, 0) if exclusive else (memory, compute)
            before = here.get(gpu, (0, 0))
            here[gpu] = (before[0] + more, before[1] + busier)
    able = (node for node in nodes if node.ready and node.schedulable)
    return [_spare_node(node, headroom, taken.get(node.name, {})) for node in sorted(able, key=lambda node: node.name)]


def seats_of(layout: Layout) -> Iterator[Seat]:
    """Yield what the models of a layout take."""
    for server in layout.servers.values():
        for demand, gpus in server.seats:
            need = demand.footprint
            yield Seat(server.node, gpus, need.memory, need.compute, need.exclusive)


def _spare_node(node: Node, headroom: int, taken: Mapping[int, tuple[int, int]]) -> SpareNode:
    opened, empty = list[OpenGpu](), dict[int, OpenGpu]()
    for gpu in gpus_of(node):
        if gpu.withheld_by:
            continue
        usable = gpu.usable(headroom)
        if gpu.index not in taken:
            if not gpu.leaving:
                empty[gpu.index] = OpenGpu(usable, gpu.compute, usable)
            continue
        memory, busy = taken[gpu.index]
        if memory >= 0:
            opened.append(OpenGpu(usable - memory, gpu.compute - busy, usable))
    return SpareNode(node, tuple(opened), empty)

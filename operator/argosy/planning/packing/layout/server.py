"""A server of a layout: one runtime process, with what its GPUs have left."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from argosy.planning.facts import Demand
from argosy.planning.packing.capacity import FreeCapacity
from argosy.planning.packing.layout.replicas import PlacedReplica, Replica


@dataclass(frozen=True, slots=True)
class Server:
    """One runtime process of a layout: the devices it holds, and the replicas on it. `free` is by device index. `size`
    is what they take of its documents, `cpu_memory` what those of them take that found no GPU, and `cpu_surged` with
    the candidates of rollouts. `ordered`: one of them needs the first of its GPUs.
    """

    name: str
    node: str
    gpus: tuple[int, ...] = ()
    placed: tuple[PlacedReplica, ...] = ()
    free: Mapping[int, FreeCapacity] = field(default_factory=dict)
    memory: int = 0  # bytes left on its GPUs together
    compute: int = 0  # thousandths left on its GPUs together
    size: int = 0  # bytes
    cpu_memory: int = 0  # bytes
    cpu_surged: int = 0  # bytes
    ordered: bool = False
    most_memory: int = 0  # bytes left on the emptiest of its GPUs
    most_compute: int = 0  # thousandths left on the idlest of its GPUs

    def hosts(self, group: str) -> bool:
        """Return whether a replica of the group is already here."""
        return any(placed.replica.group.name == group for placed in self.placed)

    @property
    def seats(self) -> Iterator[tuple[Demand, tuple[int, ...]]]:
        """The models that are here, with their device indexes; none is the CPU."""
        for placed in self.placed:
            yield from zip(placed.replica.group.demands, placed.assignment, strict=True)

    def demands_on(self, node: str, gpu: int | None = None) -> list[Demand]:
        """Return the models that it has on a GPU of a node, or on the node's CPU."""
        here = self.seats if node == self.node else ()
        return [demand for demand, gpus in here if (gpu in gpus if gpu is not None else not gpus)]

    def has(self, replica: Replica) -> bool:
        """Return whether this replica is here, with any footprint."""
        return any(placed.replica.key == replica.key for placed in self.placed)

"""The occupancy of a server's GPUs by loaded models: which GPUs, and how many bytes of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from argosy.planning.demand.footprint import footprint_of
from argosy.planning.demand.members import Members
from argosy.planning.facts import Node
from argosy.planning.migration.revisions import ModelRevision
from argosy.planning.plan import Placement
from argosy_agent.contract import VersionSource


@dataclass(frozen=True, slots=True)
class Occupant:
    """Something loaded. `gpus` are indexes of the node; `memory` is bytes on each; `alone`: it shares none of them."""

    name: str
    gpus: tuple[int, ...] = ()
    memory: int = 0
    alone: bool = False

    @classmethod
    def of(cls, name: str, versions: Iterable[VersionSource], gpus: tuple[int, ...], members: Members) -> "Occupant":
        """Return these versions of a model on these GPUs of the node.

        A version without a size of its own counts as declared now, or as the full GPU once it is no longer declared.
        """
        if not gpus:
            return cls(name)
        sizes = [_size(source, name, members) for source in versions]
        return cls(name, gpus, sum(memory for memory, _ in sizes), any(exclusive for _, exclusive in sizes))

    def on(self, gpu: int, capacity: int) -> int:
        """Return bytes that it has of a GPU."""
        return _bytes(self.memory, self.alone, capacity) if gpu in self.gpus else 0


def loaded_bytes(versions: Iterable[VersionSource], name: str, members: Members) -> int:
    """Return the bytes that these versions of a model take of each of its GPUs, or of its CPU."""
    return sum(_size(source, name, members)[0] for source in versions)


def node_gpus(revision: ModelRevision, gpus: tuple[int, ...]) -> tuple[int, ...]:
    """Return the node's GPUs of a revision, in a server that has these."""
    return tuple(gpus[index] for index in revision.gpus if index < len(gpus))


def memory_of(node: Node) -> dict[int, int]:
    """Return bytes of each real GPU, by index."""
    return {gpu.index: gpu.memory for gpu in node.gpus if not gpu.is_cpu}


def planned(placement: Placement, gpu: int, capacity: int) -> int:
    """Return bytes that a placement takes of a GPU once all is settled."""
    return _bytes(placement.memory, placement.exclusive, capacity) if gpu in placement.gpus else 0


def taken(occupants: Iterable[Occupant], memory: Mapping[int, int]) -> dict[int, int]:
    """Return bytes that are of no use to others, by GPU."""
    bytes_of = dict.fromkeys(memory, 0)
    for occupant in occupants:
        for gpu in occupant.gpus:
            capacity = memory.get(gpu, 0)
            bytes_of[gpu] = bytes_of.get(gpu, 0) + (capacity if occupant.alone else occupant.on(gpu, capacity))
    return bytes_of


def _bytes(memory: int, exclusive: bool, capacity: int) -> int:
    """Return the bytes that are taken: all of them by an exclusive model that declares no memory."""
    return memory or capacity if exclusive else memory


def _size(source: VersionSource, name: str, members: Members) -> tuple[int, bool]:
    """Return the bytes of each GPU, and whether it is taken exclusively."""
    if source.memory or source.exclusive:
        return source.memory, source.exclusive
    declared = members.models.get(name)
    need = footprint_of(declared, measured=members.measured.get(name)) if declared else None
    return (need.memory, need.exclusive) if need else (0, True)

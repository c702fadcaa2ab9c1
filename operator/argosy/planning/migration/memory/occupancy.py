"""What is loaded on a server: which GPUs it sits on, and how much it takes of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from argosy.planning.demand.footprint import footprint_of
from argosy.planning.demand.members import Members
from argosy.planning.facts import Node
from argosy.planning.migration.revisions import Form
from argosy.planning.plan import Placement
from argosy_agent.contract import VersionSource


@dataclass(frozen=True, slots=True)
class Occupant:
    """Something loaded. `gpus` are indexes of the node; `memory` is bytes on each; `alone`: nobody else fits there."""

    name: str
    gpus: tuple[int, ...] = ()
    memory: int = 0
    alone: bool = False

    @classmethod
    def of(cls, name: str, versions: Iterable[VersionSource], gpus: tuple[int, ...], members: Members) -> "Occupant":
        """Return these versions of a model on these GPUs of the node.

        One whose own size is not known counts as declared now, or as all there is where nobody declares it any more.
        """
        if not gpus:
            return cls(name)
        sizes = [_size(each, name, members) for each in versions]
        return cls(name, gpus, sum(memory for memory, _ in sizes), any(whole for _, whole in sizes))

    def on(self, gpu: int, capacity: int) -> int:
        """Return bytes that it has of a GPU."""
        return _bytes(self.memory, self.alone, capacity) if gpu in self.gpus else 0


def node_gpus(form: Form, gpus: tuple[int, ...]) -> tuple[int, ...]:
    """Return the node's GPUs that a form sits on, in a server that has these."""
    return tuple(gpus[index] for index in form.gpus if index < len(gpus))


def memory_of(node: Node) -> dict[int, int]:
    """Return bytes of each real GPU, by index."""
    return {gpu.index: gpu.memory for gpu in node.gpus if not gpu.is_cpu}


def planned(placement: Placement, gpu: int, capacity: int) -> int:
    """Return bytes that a placement takes of a GPU once all is settled."""
    return _bytes(placement.memory, placement.whole, capacity) if gpu in placement.gpus else 0


def taken(occupants: Iterable[Occupant], memory: Mapping[int, int]) -> dict[int, int]:
    """Return bytes that are of no use to others, by GPU."""
    found = dict.fromkeys(memory, 0)
    for each in occupants:
        for gpu in each.gpus:
            capacity = memory.get(gpu, 0)
            found[gpu] = found.get(gpu, 0) + (capacity if each.alone else each.on(gpu, capacity))
    return found


def _bytes(memory: int, whole: bool, capacity: int) -> int:
    """A whole-GPU model that declares no memory takes all."""
    return memory or capacity if whole else memory


def _size(source: VersionSource, name: str, members: Members) -> tuple[int, bool]:
    """Bytes of each GPU, and whether nobody else may be there."""
    if source.memory or source.exclusive:
        return source.memory, source.exclusive
    declared = members.models.get(name)
    need = footprint_of(declared) if declared else None
    return (need.memory, need.whole) if need else (0, True)

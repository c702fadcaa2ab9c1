"""Slots: free GPUs of one node, or of one NVLink domain, that a model with several GPUs or a whole Pod can have."""

from collections.abc import Iterable
from dataclasses import dataclass

from argosy.planning.packing.search.devices import Devices

SIZES = (8, 4, 2)


@dataclass(frozen=True, slots=True, order=True)
class FreeGpus:
    """How good what is free is: `gpus` that are free, then those of them that are in slots of 8, of 4 and of 2.

    Compared in this order. A step of consolidation always raises it, so that no later one takes it back.
    """

    gpus: int = 0
    in_slots: tuple[int, ...] = (0,) * len(SIZES)

    @classmethod
    def of(cls, counts: Iterable[int], gpus: int) -> "FreeGpus":
        """Return how good it is that so many GPUs are free, and of them so many in each location."""
        return cls().changed(((0, count) for count in counts), gpus)

    def changed(self, counts: Iterable[tuple[int, int]], gpus: int) -> "FreeGpus":
        """Return the same with `gpus` more that are free, where locations have another number of them: before, then."""
        every = list(counts)
        more = (sum(now // size * size - was // size * size for was, now in every) for size in SIZES)
        return FreeGpus(self.gpus + gpus, tuple(had + plus for had, plus in zip(self.in_slots, more, strict=True)))

    def gain(self, before: "FreeGpus") -> int:
        """Return the GPUs that came free since, or those of slots that came, where these are more."""
        slots = (now - former for now, former in zip(self.in_slots, before.in_slots, strict=True))
        return max(self.gpus - before.gpus, *slots)


def locations_of(devices: Devices) -> tuple[tuple[int, ...], ...]:
    """Return where a slot can be: the NVLink domains of each node, or all of its GPUs where it has none. A slice
    of a GPU is in none.
    """
    linked = {devices.node[domain[0]] for domain in devices.domains}
    nodes = (node for node in range(len(devices.nodes)) if node not in linked)
    unlinked = (tuple(gpu for gpu in devices.of_node(node) if not devices.sliced[gpu]) for node in nodes)
    return (*devices.domains, *unlinked)

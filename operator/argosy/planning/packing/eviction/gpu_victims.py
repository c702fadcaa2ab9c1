"""Victims of one GPU: which of them leave enough of it, by arithmetic, before any place is tried."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from argosy.planning.facts import Footprint
from argosy.planning.packing.capacity import FreeCapacity
from argosy.planning.packing.eviction.victims import Placed, Victim, Victims


@dataclass(frozen=True, slots=True)
class GpuVictims:
    """What may give way on one GPU. `most` is left of it without any of them, `least` with all of them."""

    most: FreeCapacity
    least: FreeCapacity
    singles: tuple[tuple[Victim, FreeCapacity], ...]  # each with what is left without it, the cheapest first
    orders: tuple[Victims, ...]  # the largest first, and the lowest priority first
    gpu: int

    @classmethod
    def of(cls, placed: Placed, node: str, gpu: int, victims: Victims) -> "GpuVictims":
        """Return the victims that sit on a GPU of a node, of all that the node has."""
        own = [victim for victim in victims if any(gpu in gpus for gpus in victim.placed.assignment)]
        most = _without_victims(placed, node, gpu, {victim.name for victim in own})

        def by(order: Callable[[Victim], tuple[object, ...]]) -> Victims:
            return tuple(sorted(own, key=lambda victim: (*order(victim), victim.name)))

        cheapest = by(lambda victim: (placed.price((victim,))[0], victim.memory))
        largest = by(lambda victim: (-victim.memory, placed.price((victim,))[0]))
        lowest = by(lambda victim: (placed.price((victim,))[0], -victim.memory))
        singles = tuple((victim, _with(most, gpu, [one for one in own if one is not victim])) for victim in cheapest)
        return cls(most, _with(most, gpu, own), singles, (largest, lowest), gpu)

    def enough(self, need: Footprint) -> Iterator[Victims]:
        """Yield sets of victims that leave enough for a model: none, one, or the fewest, and the lowest priorities."""
        if not _takes(self.most, need):
            return
        if _takes(self.least, need):
            yield ()
            return
        single = next((victim for victim, left in self.singles if _takes(left, need)), None)
        if single is not None:
            yield (single,)
        yield from (chosen for order in self.orders if len(chosen := self._chosen(order, need)) > 1)

    def _chosen(self, order: Victims, need: Footprint) -> Victims:
        """Return the first victims of an order that are enough, without those that may stay."""
        left, count = self.most, len(order)
        while count and _takes(less := _less(left, self.gpu, order[count - 1]), need):
            left, count = less, count - 1
        chosen = list(order[:count])
        for victim in reversed(order[:count]):
            if _takes(less := _less(left, self.gpu, victim), need):
                left = less
                chosen.remove(victim)
        return tuple(chosen)


def _takes(left: FreeCapacity, need: Footprint) -> bool:
    return left.empty and left.memory >= need.settled if need.exclusive else left.takes(need)


def _with(left: FreeCapacity, gpu: int, staying: Sequence[Victim]) -> FreeCapacity:
    for victim in staying:
        left = _less(left, gpu, victim)
    return left


def _less(left: FreeCapacity, gpu: int, victim: Victim) -> FreeCapacity:
    for demand, gpus in zip(victim.group.demands, victim.placed.assignment, strict=True):
        left = left.less(demand.footprint) if gpu in gpus else left
    return left


def _without_victims(placed: Placed, node: str, gpu: int, gone: set[tuple[str, str]]) -> FreeCapacity:
    left = placed.layout.topology.empty_gpu(node, gpu)
    for server in placed.servers(node):
        for one in server.placed if gpu in server.gpus else ():
            if (one.replica.group.name, server.name) not in gone:
                left = _less(left, gpu, Victim(one, server))
    return left

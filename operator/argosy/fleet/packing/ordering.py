"""In which order replicas are placed. No order is best for every pool: several are tried, and the best plan is kept."""

from collections.abc import Callable, Iterator

from argosy.fleet.facts import Footprint, Group
from argosy.fleet.packing.capacity import FULL_COMPUTE
from argosy.fleet.packing.layout import Replica, Terrain

SortKey = Callable[[Replica], tuple[object, ...]]
_Size = Callable[[Footprint, int], int]


def dense_orders(terrain: Terrain) -> Iterator[SortKey]:
    """Orders that waste little room: whole GPUs first, then by the scarcer resource, or by both together."""
    capacity = _capacity(terrain)

    def by(size: _Size) -> SortKey:
        return lambda r: (-_whole(r.group), -_size(r.group, size, capacity), r.group.name, r.index)

    yield by(_dominant)
    yield by(_total)


def fair_orders(terrain: Terrain) -> Iterator[SortKey]:
    """Orders for a pool too small for all: one replica of everything before a second of anything."""
    capacity = _capacity(terrain)

    def hardest(r: Replica) -> tuple[object, ...]:
        return (r.index, -_whole(r.group), -_size(r.group, _dominant, capacity), r.group.name)

    def easiest(r: Replica) -> tuple[object, ...]:
        return (r.index, _whole(r.group), _size(r.group, _dominant, capacity), r.group.name)

    yield hardest
    yield easiest


def _dominant(need: Footprint, capacity: int) -> int:
    """Thousandths of the resource of which the model takes the larger part."""
    return max(need.memory * FULL_COMPUTE // capacity, need.compute)


def _total(need: Footprint, capacity: int) -> int:
    """Thousandths of both resources together."""
    return need.memory * FULL_COMPUTE // capacity + need.compute


def _size(group: Group, size: _Size, capacity: int) -> int:
    return sum(size(demand.footprint, capacity) for demand in group.demands if not demand.footprint.whole)


def _whole(group: Group) -> int:
    return sum(demand.footprint.gpus for demand in group.demands)


def _capacity(terrain: Terrain) -> int:
    return max((size for gpus in terrain.usable.values() for size in gpus.values()), default=0) or 1

"""Replicas one by one, each in its best place: for CPUs, and where a limit of servers binds."""

from collections.abc import Iterator, Sequence

from argosy.planning.packing.equivalence import Hopeless
from argosy.planning.packing.filling.missing import Filled, cost
from argosy.planning.packing.layout import Layout, Replica, Topology
from argosy.planning.packing.scoring import best
from argosy.planning.packing.search.items import items_of
from argosy.planning.packing.search.starts.greedy import fair_starts, ranked_starts


def fill_one_by_one(start: Layout, todo: Sequence[Replica]) -> Filled:
    """Return the best layout of several orders: those by size, and fair ones where each of them leaves something out.

    A replica of a rollout is placed where there is memory for both revisions, or else for the larger one, or else for
    the stable one.
    """
    attempts = [_fill(start, replicas) for replicas in _orders(start.topology, todo, fair=False)]
    if all(missing for _, missing in attempts):
        attempts += [_fill(start, replicas) for replicas in _orders(start.topology, todo, fair=True)]
    return min(attempts, key=cost)


def fill_in_order(start: Layout, todo: Sequence[Replica]) -> Filled:
    """Return the layout that has replicas in addition, the highest rank first, and of it the largest."""
    return _fill(start, ranked(start.topology, todo))


def ranked(topology: Topology, replicas: Sequence[Replica]) -> list[Replica]:
    """Return the replicas with the highest rank first, and of it the largest."""
    return next(_orders(topology, replicas, fair=False))


def _orders(topology: Topology, todo: Sequence[Replica], fair: bool) -> Iterator[list[Replica]]:
    items = items_of(topology, todo)
    starts = fair_starts if fair else ranked_starts
    largest = max((size for gpus in topology.usable.values() for size in gpus.values()), default=0) or 1
    for start in starts(largest):
        yield [item.replica for item in sorted(items, key=start.order)]


def _fill(layout: Layout, todo: Sequence[Replica]) -> Filled:
    missing = []
    hopeless = Hopeless()
    for replica in todo:
        stable = replica.without_candidate
        is_hopeless = stable in hopeless
        placed = None if is_hopeless else _placed(layout, replica)
        if placed is None:
            missing.append(stable)
            if not is_hopeless:
                hopeless.add(layout, stable)
        else:
            layout = placed
    return layout, tuple(missing)


def _placed(layout: Layout, replica: Replica) -> Layout | None:
    for footprints in dict.fromkeys((replica, replica.without_surge, replica.without_candidate)):
        slot = best(layout, footprints)
        if slot is not None:
            return slot.applied(layout, footprints)
    return None

"""Rearrangement: where the first attempt leaves a replica unschedulable, as little as possible moves to free capacity.

What moves gets another place; it is never left without one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from argosy.planning.packing.bound.replicas import BoundReplica, bind, weight
from argosy.planning.packing.equivalence import FreeSlots
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.packing.layout import Layout, Replica, Topology
from argosy.planning.packing.lower_bound import lower_bound
from argosy.planning.packing.scoring import best, slots

_EXHAUSTIVE_REPLICAS = 9
_EXHAUSTIVE_STEPS = 500


@dataclass(frozen=True, slots=True)
class RearrangementBudget:
    """How much may be tried for all unschedulable replicas of one pool together."""

    moves: Budget = field(default_factory=lambda: Budget(400))
    steps: Budget = field(default_factory=lambda: Budget(3 * _EXHAUSTIVE_STEPS))


def rearrange(
    layout: Layout, unschedulable: Replica, bound: Mapping[tuple[str, int], BoundReplica], budget: RearrangementBudget
) -> Layout | None:
    """Return a layout with everything that is in `layout`, and `unschedulable` too; None if none was found.

    A small pool is searched whole, fewest moves first, unless all together need more GPUs than it has. In a large one,
    only single moves are tried. `bound` by the replica's key.
    """
    placed = [placed.replica for server in layout.servers.values() for placed in server.placed]
    replicas = [*placed, unschedulable]
    is_small = len(replicas) <= _EXHAUSTIVE_REPLICAS
    if is_small and _is_too_much(layout.topology, replicas):
        return None
    moved_one = _move_one(layout, unschedulable, bound, budget.moves)
    if not is_small or (moved_one is not None and not bound):
        return moved_one
    steps = budget.steps.part(_EXHAUSTIVE_STEPS)
    placements = _search_all(layout.topology, replicas, [*bound.values()], steps)
    budget.steps.back(steps)
    return placements or moved_one


def _is_too_much(topology: Topology, replicas: Sequence[Replica]) -> bool:
    """Return whether these replicas need more GPUs than there are, whatever moves."""
    groups = {replica.group.name: replica.group for replica in replicas}
    counts = Counter(replica.group.name for replica in replicas)
    needed = tuple(replace(group, replicas=counts[name]) for name, group in groups.items())
    return lower_bound(replace(topology.facts, groups=needed)) > sum(map(len, topology.usable.values()))


def _move_one(
    layout: Layout, unschedulable: Replica, bound: Mapping[tuple[str, int], BoundReplica], budget: Budget
) -> Layout | None:
    """Move one placed replica elsewhere: the lightest that does not run yet, else the lightest that does.

    Where nothing had a place before, only the node that it leaves can have one then.
    """
    if budget.left <= 0:
        return None
    placed = [(placed_here.replica, server.name) for server in layout.servers.values() for placed_here in server.placed]
    placed.sort(key=lambda item: (item[0].key in bound, _size(item[0]), item[0].key))
    free_slots = FreeSlots(layout)
    for moving, server_name in placed:
        if not budget.spend():
            return None
        without, node = layout.without(moving, server_name), layout.servers[server_name].node
        slot = best(without, unschedulable, on=None if layout.full else node)
        if slot is None:
            continue
        with_it = slot.applied(without, unschedulable)
        moved = best(with_it, moving, on=None if layout.full or free_slots.has(moving) else node)
        if moved is not None:
            return moved.applied(with_it, moving)
    return None


def _size(replica: Replica) -> tuple[int, ...]:
    """Return the whole GPUs, the memory and the compute of a replica: the less of them, the less it takes to move."""
    return tuple(-part for part in weight(replica.group)[0])


def _search_all(
    topology: Topology, replicas: Sequence[Replica], bound: Sequence[BoundReplica], budget: Budget
) -> Layout | None:
    """Return the layout of all `replicas` that moves the fewest bound ones, and of those the one with
    the fewest GPUs.
    """
    desired = {replica.key for replica in replicas}
    placed = [replica for replica in bound if replica.replica.key in desired]
    for moves in range(len(placed) + 1):
        if budget.left <= 0:
            return None
        layouts = [
            layout
            for moved in combinations(placed, moves)
            if (layout := _search_neighbourhood([p for p in placed if p not in moved], topology, replicas, budget))
        ]
        if layouts:
            return min(layouts, key=lambda layout: layout.gpus_used)
    return None


def _search_neighbourhood(
    retained: Sequence[BoundReplica], topology: Topology, replicas: Sequence[Replica], budget: Budget
) -> Layout | None:
    """Return a layout in which the `retained` stay, and every other replica goes where it fits."""
    layout = bind(Layout.empty(topology).without_leaving, retained)
    if sum(len(server.placed) for server in layout.servers.values()) < len(retained):
        return None
    settled = {replica.replica.key for replica in retained}
    todo = [replica for replica in replicas if replica.key not in settled]
    return _search(layout, sorted(todo, key=lambda replica: (weight(replica.group), replica.index)), budget)


def _search(layout: Layout, todo: Sequence[Replica], budget: Budget) -> Layout | None:
    """Search depth-first over every slot of every replica, the best first."""
    if not todo:
        return layout
    for slot in sorted(slots(layout, todo[0], tries=64), key=lambda slot: slot.cost):
        if not budget.spend():
            return None
        placements = _search(slot.applied(layout, todo[0]), todo[1:], budget)
        if placements is not None:
            return placements
    return None
